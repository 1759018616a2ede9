"""Check that a version can be published: every place that states a version states this one.

Run ``python tools/release_version.py 0.2.0 --tag refs/tags/v0.2.0``; the release workflow does so before it builds.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def disagreements(version: str, tag: str | None, root: Path = ROOT) -> list[str]:
    """Return a sentence for each place that does not state this version as that of a release."""
    found = []
    if not re.fullmatch(r"\d+\.\d+\.\d+(rc\d+)?", version):
        found.append(f"{version} is no version of a release, such as 0.2.0 or 0.2.0rc1")
    if tag is not None and tag != f"refs/tags/v{version}":
        found.append(f"the workflow was started on {tag}, not on refs/tags/v{version}")
    stated = {
        "pyproject.toml": tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"],
        "CITATION.cff": _match(root / "CITATION.cff", r"^version: (\S+)$"),
        "conda/recipe.yaml": _match(root / "conda" / "recipe.yaml", r'^  version: "(\S+)"$'),
    }
    found += [f"{place} has version {other}" for place, other in stated.items() if other != version]
    heading = _match(root / "CHANGELOG.md", r"^## (.+)$")
    if not re.fullmatch(rf"{re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", heading):
        found.append(f"the first heading of CHANGELOG.md is {heading!r}, not '{version} (YYYY-MM-DD)'")
    return found


def _match(path: Path, pattern: str) -> str:
    """Return what the first match of the pattern holds, or an empty string."""
    match = re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    return match[1] if match else ""


def main() -> None:
    """Print every disagreement and exit with 1 if there is one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version")
    parser.add_argument("--tag", help="the ref on which the workflow runs")
    asked = parser.parse_args()
    found = disagreements(asked.version, asked.tag)
    print("\n".join(found) or f"Every place states version {asked.version}.")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
