"""The release workflow, as far as it can be checked without a release."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.deploy import tools
from tests.deploy.compose import ROOT
from tests.services.missing import MissingError, skip

FILE = ROOT / ".github/workflows/release.yml"
FILES = sorted(FILE.parent.glob("*.yml"))
WORKFLOW = yaml.safe_load(FILE.read_text())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def had(get: Callable[[], Path]) -> Path:
    try:
        return get()
    except MissingError as error:
        skip(error)


def test_wheels_are_for_the_pythons_that_are_promised() -> None:
    promised = {
        text.rpartition(" ")[2]
        for text in PROJECT["project"]["classifiers"]
        if text.startswith("Programming Language :: Python :: 3.")
    }
    built = {f"3.{one[3:5]}" for one in PROJECT["tool"]["cibuildwheel"]["build"]}
    assert built == promised == {"3.11", "3.12", "3.13", "3.14"}
    assert PROJECT["project"]["requires-python"] == f">={min(promised)}"


def test_nothing_is_published_but_a_tag_that_was_built_and_tried() -> None:
    jobs = WORKFLOW["jobs"]
    assert [jobs[name].get("needs") for name in ("sdist", "wheels", "inventory", "publish")] == [
        None,
        "sdist",
        ["sdist", "wheels"],
        "inventory",
    ]
    assert jobs["publish"]["if"] == "github.ref_type == 'tag'"
    assert WORKFLOW["permissions"] == {"contents": "read"}
    trusted = {name for name, job in jobs.items() if "id-token" in job.get("permissions", {})}
    assert trusted == {"publish"}
    assert "secrets." not in FILE.read_text(), "PyPI trusts the workflow itself"


@pytest.mark.deploy
def test_the_workflows_are_of_github() -> None:
    found = had(lambda: tools.of_python(tools.CHECK_JSONSCHEMA))
    check = [sys.executable, "-m", "check_jsonschema"]
    tools.run([*check, "--builtin-schema", "vendor.github-workflows", *FILES], packages=found)


@pytest.mark.deploy
@pytest.mark.parametrize(
    ("platform", "machine", "tag"),
    [
        ("linux", "x86_64", "manylinux_x86_64"),
        ("linux", "aarch64", "manylinux_aarch64"),
        ("macos", "arm64", "macosx_arm64"),
        ("macos", "x86_64", "macosx_x86_64"),
    ],
)
def test_each_runner_builds_one_wheel_for_each_python(
    platform: str, machine: str, tag: str
) -> None:
    found = had(lambda: tools.of_python(tools.CIBUILDWHEEL))
    ask = [sys.executable, "-m", "cibuildwheel", "--platform", platform, "--archs", machine]
    listed = tools.run([*ask, "--print-build-identifiers", ROOT], packages=found)
    assert listed.split() == [f"cp3{minor}-{tag}" for minor in range(11, 15)]


@pytest.mark.deploy
def test_the_inventory_names_what_a_release_needs(tmp_path: Path) -> None:
    found = had(lambda: tools.of_python(tools.CYCLONEDX))
    made = tmp_path / "sbom.json"
    ask = [sys.executable, "-m", "cyclonedx_py", "environment", sys.executable]
    about = ["--pyproject", ROOT / "pyproject.toml", "--output-reproducible", "--of", "JSON"]
    tools.run([*ask, *about, "-o", made], packages=found)
    bill = json.loads(made.read_text())
    assert bill["metadata"]["component"]["name"] == "ripple-stream"
    assert {"pyarrow", "numpy", "crc32c"} <= {one["name"] for one in bill["components"]}
