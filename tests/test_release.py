"""What a release needs: one version, a recipe that agrees with the metadata, workflows that run pinned actions only."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(not (ROOT / ".github").exists(), reason="the workflows are not in a distribution")

METADATA = ROOT / "pyproject.toml"
PROJECT = tomllib.loads(METADATA.read_text(encoding="utf-8"))["project"] if METADATA.exists() else {}


@pytest.fixture(scope="module")
def check():
    spec = importlib.util.spec_from_file_location("release_version", ROOT / "tools" / "release_version.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.disagreements


def released(folder, version="1.2.3"):
    """Write the four places as they are for a release."""
    (folder / "conda").mkdir()
    places = {
        "pyproject.toml": f'[project]\nversion = "{version}"\n',
        "CITATION.cff": f"cff-version: 1.2.0\nversion: {version}\n",
        "conda/recipe.yaml": f'context:\n  version: "{version}"\n',
        "CHANGELOG.md": f"# Changelog\n\n## {version} (2026-11-30)\n",
    }
    for place, text in places.items():
        (folder / place).write_text(text)
    return folder


def test_a_release_states_one_version_and_a_date(check, tmp_path):
    folder = released(tmp_path)
    assert check("1.2.3", "refs/tags/v1.2.3", folder) == []
    assert len(check("1.2.3", "refs/heads/main", folder)) == 1
    assert len(check("1.2.4", "refs/tags/v1.2.4", folder)) == 4
    assert any("no version of a release" in sentence for sentence in check("1.2.3.dev0", None, folder))
    (folder / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.3 (not released)\n")
    (sentence,) = check("1.2.3", "refs/tags/v1.2.3", folder)
    assert "not released" in sentence


def test_every_place_of_the_project_has_one_version(check):
    assert not [sentence for sentence in check(PROJECT["version"], None) if " has version " in sentence]


def test_the_recipe_has_the_requirements_of_the_metadata():
    recipe = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    run = recipe.partition("  run:\n")[2].partition("\ntests:")[0]
    listed = {line.strip("- ").replace(" ", "") for line in run.strip().splitlines()}
    assert listed == set(PROJECT["dependencies"]) | {"python>=${{python_min}}"}
    lowest = PROJECT["requires-python"].removeprefix(">=")
    assert f'"{lowest}"' in (ROOT / "conda" / "variants.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("workflow", sorted((ROOT / ".github").glob("workflows/*.yml")), ids=lambda path: path.name)
def test_actions_are_pinned_by_the_hash_of_a_commit(workflow):
    text = workflow.read_text(encoding="utf-8")
    used = re.findall(r"uses: (\S+)(.*)", text)
    assert used
    for action, comment in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), f"{action} does not say its version"
    hashes = {tuple(action.split("@")) for action, _ in used}
    assert len(hashes) == len({name for name, _ in hashes}), "one action in two versions"
    assert re.search(r"^permissions:", text, re.MULTILINE)


def test_every_stated_python_is_tested_by_the_workflow():
    stated = {line.rsplit(" ", 1)[1] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)}
    for name in ("ci.yml", "release.yml"):
        matrix = re.search(
            r"python-version: \[(.*)\]", (ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8")
        )[1]
        assert {version.strip(' "') for version in matrix.split(",")} == stated
