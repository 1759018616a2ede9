"""Build the wheel and the source distribution, and try both in fresh environments.

Run ``make release-check``; ``make release-check PYTHONS="python3.11 python3.13"`` names the versions of Python, and
``--dist DIR`` a folder with distributions that are already built. It checks

- that the wheel holds ``py.typed`` and no tests, and the source distribution the tests and their templates;
- for each Python, in an environment with the wheel and none of its extras: ``isopleth demo``, a scikit-learn pipeline, the time
  of ``import isopleth`` after scikit-learn, and the types that a user's ``mypy --strict`` sees;
- that a small part of the tests passes from the unpacked source distribution, against the installed wheel.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Processor time that `import isopleth` may take after scikit-learn is imported.
IMPORT_SECONDS = 0.1

IMPORT = """
import sklearn.base, time
start = time.process_time()
import isopleth
print(time.process_time() - start)
"""

# What a user may write. `reveal_type` lines show whether types arrive, which a script without errors does not.
SCRIPT = """
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from isopleth import SOSREP, AnomalyDetector, two_sample_test
from isopleth.core.errors import InputError

rows = np.random.default_rng(0).normal(size=(120, 3))
detector = AnomalyDetector(n_estimators=25, random_state=0).fit(rows)
density = SOSREP().fit(rows)
result = two_sample_test(rows[:60], rows[60:], random_state=0)
reveal_type(detector)
reveal_type(density)
reveal_type(result.pvalue)
pipeline = make_pipeline(StandardScaler(), AnomalyDetector(n_estimators=25, random_state=0)).fit(rows)
assert set(pipeline.predict(rows)) <= {-1, 1}
try:
    detector.fit(np.full((3, 2), np.inf))
except InputError as error:
    print(error)
"""
REVEALED = ("isopleth.tasks.anomaly.detector.AnomalyDetector", "isopleth.density.sosrep.SOSREP", "float")
MISTAKE = "from isopleth import two_sample_test\nmeant: str = two_sample_test([[0.0]], [[1.0]]).pvalue\n"

# Quick tests of each kind: numbers, files, the command line, models, conventions of scikit-learn for one estimator.
TESTS = [
    "tests/kernels/test_kernels.py",
    "tests/io/test_models.py",
    "tests/cli/test_anomalies.py",
    "tests/test_readme.py",
]
TEST_PACKAGES = ["pytest", "hypothesis", "array-api-strict", "pandas", "polars", "openpyxl", "matplotlib"]


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command outside the source folder and return its output; end with the output if it fails."""
    # Neither a PYTHONPATH nor the folder of this script may lead to the source.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    made = subprocess.run([str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True)
    if made.returncode:
        sys.exit(f"failed: {' '.join(map(str, command))}\n{made.stdout}{made.stderr}")
    return made.stdout


def check(holds: bool, what: str) -> None:
    """Print what was checked, or end."""
    if not holds:
        sys.exit(f"failed: {what}")
    print(f"  {what}", flush=True)


def environment(python: str, folder: Path) -> Path:
    """Return the Python of a new virtual environment."""
    run(python, "-m", "venv", folder, cwd=folder.parent)
    return folder / "bin" / "python"


def build(folder: Path) -> Path:
    """Build both distributions, the wheel from the unpacked source distribution, and return their folder."""
    python = environment(sys.executable, folder / "builder")
    run(python, "-m", "pip", "install", "-q", "build", cwd=folder)
    run(python, "-m", "build", "--outdir", folder / "dist", ROOT, cwd=folder)
    return folder / "dist"


def check_contents(dist: Path, folder: Path) -> tuple[Path, Path]:
    """Check what both distributions hold; return the wheel and the unpacked source distribution."""
    (wheel,), (source,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    print(f"{wheel.name}, {source.name}", flush=True)
    in_wheel = zipfile.ZipFile(wheel).namelist()
    with tarfile.open(source) as archive:
        in_source = {name.partition("/")[2] for name in archive.getnames()}
        archive.extractall(folder / "source", filter="data")
    check("isopleth/py.typed" in in_wheel, "the wheel holds py.typed")
    tops = {name.split("/")[0] for name in in_wheel if ".dist-info" not in name}
    check(tops == {"isopleth", "isopleth_command.py"}, "the wheel holds the package and its command, and nothing else")
    tracked = run("git", "ls-files", "src", "tests", "docs", "examples", "experiments", "benchmarks", "tools", cwd=ROOT)
    absent = sorted(set(tracked.split()) - in_source)
    check(not absent, f"the source distribution holds all {len(tracked.split())} files of the source" + "".join(absent))
    return wheel, next((folder / "source").iterdir())


def check_wheel(python: Path, folder: Path) -> None:
    """Check the installed wheel without extras."""
    version = run(python.with_name("isopleth"), "--version", cwd=folder).strip()
    demo = run(python.with_name("isopleth"), "demo", cwd=folder)
    check("row" in demo, f"{version}: isopleth demo prints {len(demo.splitlines())} lines without extras")
    seconds = statistics.median(float(run(python, "-c", IMPORT, cwd=folder)) for _ in range(5))
    check(seconds < IMPORT_SECONDS, f"import isopleth takes {seconds:.3f} s of processor time after scikit-learn")


def check_types(python: Path, folder: Path) -> None:
    """Check that a user's mypy sees types, and finds a mistake."""
    run(python, "-m", "pip", "install", "-q", "mypy", cwd=folder)
    script, mistake = folder / "script.py", folder / "mistake.py"
    script.write_text(SCRIPT)
    mistake.write_text(MISTAKE)
    configuration = folder / "mypy.ini"
    configuration.write_text("[mypy]\nstrict = true\n[mypy-sklearn.*]\nignore_missing_imports = true\n")
    told = run(python, "-m", "mypy", "--config-file", configuration, script, cwd=folder)
    check(all(f'"{name}"' in told for name in REVEALED), "mypy --strict passes on a user's script and knows the types")
    refused = subprocess.run(
        [python, "-m", "mypy", "--config-file", configuration, mistake], cwd=folder, capture_output=True, text=True
    )
    check("Incompatible types in assignment" in refused.stdout, "mypy --strict finds a mistake in a user's script")
    script.write_text(SCRIPT.replace("reveal_type", "print"))
    said = run(python, script, cwd=folder)
    check("X contains inf" in said, "the script runs, in a pipeline of scikit-learn too")


def check_source(python: Path, source: Path) -> None:
    """Run some tests of the source distribution against the installed wheel."""
    run(python, "-m", "pip", "install", "-q", *TEST_PACKAGES, cwd=source)
    said = run(python, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", *TESTS, cwd=source)
    where = run(python, "-c", "import isopleth; print(isopleth.__file__)", cwd=source)
    check("site-packages" in where, f"tests of the source distribution: {said.strip().splitlines()[-1]}")


def main() -> None:
    """Build, and check with each Python."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--dist", type=Path, help="folder with a wheel and a source distribution, instead of building them"
    )
    parser.add_argument("pythons", nargs="*", default=[sys.executable], help="commands that start Python 3.11 or later")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel, source = check_contents((asked.dist or build(folder)).resolve(), folder)
        for i, command in enumerate(asked.pythons):
            place = folder / f"user{i}"
            place.mkdir()
            python = environment(command, place / "environment")
            print(run(python, "--version", cwd=place).strip(), flush=True)
            run(python, "-m", "pip", "install", "-q", wheel, cwd=place)
            check_wheel(python, place)
            check_types(python, place)
            check_source(python, source)
    print("Both distributions can be used.")


if __name__ == "__main__":
    main()
