"""Open every page of the built documentation in headless Chromium, at the width of a phone and of a desktop.

Run ``make check-pages`` after ``make docs``; it needs ``chromium`` on the path. A page fails if it is wider than the window, if a
picture or a script is missing, if a formula was not drawn or if a script fails. The pages are served from this machine; no
network is needed.
"""

from __future__ import annotations

import functools
import html
import http.server
import json
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

PAGES = Path(__file__).parents[1] / "docs" / "_build" / "html"
WIDTHS = (400, 1280)
CHUNK = 10  # pages that one browser opens
CHROMIUM = [
    "chromium",
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=120000",
    "--window-size=1400,1000",
    "--dump-dom",
]

# Opens each page in a frame of the given width, waits until formulas are drawn, and writes one line of JSON for each page.
SCRIPT = """<body><pre id="found"></pre><script>
(async () => {
  for (const page of %(pages)s) {
    const frame = document.createElement("iframe");
    frame.style.cssText = "border:0;height:900px;width:%(width)dpx";
    document.body.append(frame);
    await new Promise(loaded => { frame.onload = loaded; frame.src = page; });
    await new Promise(later => setTimeout(later, 3000));
    const view = frame.contentDocument, errors = [...frame.contentWindow.failures];
    if (view.documentElement.scrollWidth > %(width)d) errors.push(`${view.documentElement.scrollWidth} pixels wide`);
    if (view.querySelector("mjx-merror")) errors.push("a formula with an error");
    if (view.querySelector(".math") && !view.querySelector("mjx-container")) errors.push("formulas not drawn");
    document.getElementById("found").textContent += JSON.stringify([page, errors]) + "\\n";
    frame.remove();
  }
})();
</script>"""


# Stands at the head of each page, to note failures of scripts, and scripts, style sheets and pictures that are missing.
NOTE_FAILURES = b"""<head><script>
window.failures = [];
addEventListener("error", e => failures.push(e.message || "missing " + (e.target.src || e.target.href)), true);
</script>"""


class _Pages(http.server.SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        """Send a file; pages with the lines that note failures."""
        path = PAGES / self.path.lstrip("/").partition("?")[0]
        if path.suffix != ".html" or not path.is_file():
            return super().do_GET()
        content = path.read_bytes().replace(b"<head>", NOTE_FAILURES, 1)
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        return None

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def open_pages(port: int, name: str, pages: list[str], width: int) -> dict[str, list[str]]:
    """Return the defects of each page that the browser opened."""
    (PAGES / name).write_text(SCRIPT % {"pages": json.dumps(pages), "width": width}, encoding="utf-8")
    try:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            command = [*CHROMIUM, f"--user-data-dir={profile}", f"http://127.0.0.1:{port}/{name}"]
            shown = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout
    finally:
        (PAGES / name).unlink()
    found = re.search(r'<pre id="found">(.*?)</pre>', shown, re.DOTALL)
    return dict(json.loads(line) for line in html.unescape(found[1] if found else "").splitlines())


def main() -> int:
    """Print the defects and return 1 if there are any."""
    pages = [
        path.relative_to(PAGES).as_posix() for path in sorted(PAGES.rglob("*.html")) if "_static" not in path.parts
    ]
    if not pages:
        print(f"There are no pages in {PAGES}; run `make docs` first.")
        return 1
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Pages, directory=str(PAGES)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    defects = 0
    for width in WIDTHS:
        for start in range(0, len(pages), CHUNK):
            chunk = pages[start : start + CHUNK]
            found = open_pages(server.server_port, "_check.html", chunk, width)
            for page in chunk:
                for defect in found.get(page, ["was not opened"]):
                    defects += 1
                    print(f"{page} at {width} pixels: {defect}", flush=True)
    print(f"{len(pages)} pages at {len(WIDTHS)} widths: {defects} defects")
    return int(defects > 0)


if __name__ == "__main__":
    sys.exit(main())
