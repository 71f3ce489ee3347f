"""The papers, the workflows, the Makefile and the pre-commit hook agree with the tree."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import ripple

ROOT = Path(__file__).resolve().parent.parent
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z][a-z-]*):(?!=)", MAKEFILE, re.MULTILINE))
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
RETIRED = dict(line.split("->") for line in (ROOT / ".ci/retired.txt").read_text().splitlines())


def spelled(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "page.md").write_text(text)
    command = [sys.executable, "-m", "codespell_lib", folder / "page.md"]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


@pytest.mark.parametrize(
    "page", ["CONTRIBUTING.md", "docs/stability.md", "docs/design/template.md"]
)
def test_paths_and_targets_on_the_page_exist(page: str) -> None:
    text = (ROOT / page).read_text()
    named = re.findall(r"`((?:[a-z.][\w.-]*/)+[\w.-]*)[^`]*`", text)
    assert [name for name in named if "NNNN" not in name and not (ROOT / name).exists()] == []
    assert set(re.findall(r"(?:`|^)make ([a-z-]+)", text, re.MULTILINE)) <= TARGETS


def test_changelog_begins_with_this_version() -> None:
    found = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert found is not None
    assert found[1] == ripple.__version__
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == ripple.__version__


def test_make_help_lists_each_phony_target() -> None:
    done = subprocess.run(
        ["make", "--no-print-directory", "help"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    phony = re.search(r"^\.PHONY: ((?:.*\\\n)*.*)$", MAKEFILE, re.MULTILINE)
    assert phony is not None
    assert {line.split()[0] for line in done.stdout.splitlines()} == set(phony[1].split()) - {"\\"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_runs_targets_of_the_makefile(path: Path) -> None:
    jobs = yaml.safe_load(path.read_text())["jobs"].values()
    commands = "\n".join(step.get("run", "") for job in jobs for step in job["steps"])
    assert set(re.findall(r"^make ([a-z-]+)", commands, re.MULTILINE)) <= TARGETS


def test_name_of_the_nightly_workflow_has_its_number_of_seeds() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/nightly.yml").read_text())
    assert f"{workflow['env']['SEEDS']} seeds" in workflow["name"]


def test_simulation_tries_each_trial_of_a_cluster() -> None:
    trials = re.findall(r"^    (\w+)=lambda", (ROOT / "tests/worker/trials.py").read_text(), re.M)
    tried = set(re.findall(r"tests\.worker\.trials:(\w+)", MAKEFILE))
    assert len(trials) > 20
    assert {*trials, "one_partition"} == tried


def test_retired_term_is_rejected_with_its_replacement(tmp_path: Path) -> None:
    done = spelled(tmp_path, "\n".join(RETIRED))
    assert done.returncode != 0
    assert {line.split()[1] for line in done.stdout.splitlines()} == {*RETIRED}
    assert spelled(tmp_path, "\n".join(RETIRED.values())).returncode == 0


def test_hook_rejects_a_staged_mistake_and_accepts_its_correction(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci/retired.txt").write_text((ROOT / ".ci/retired.txt").read_text())
    environment = {**os.environ, "PYTHON": sys.executable}
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)

    def code(file: str, text: str) -> int:
        (tmp_path / file).write_text(text)
        subprocess.run(["git", "add", file], cwd=tmp_path, check=True)
        command = [ROOT / ".ci/pre-commit"]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, check=False, capture_output=True
        )
        return done.returncode

    retired = next(iter(RETIRED))
    assert code("page.md", f"The {retired} of a partition.\n") != 0
    assert code("page.md", "The task of a partition.\n") == 0
    assert code("module.py", '"""A module."""\n\nimport os\n') != 0
    assert code("module.py", '"""A module."""\n\nx  =  1\n') != 0
    assert code("module.py", '"""A module."""\n\nx = 1\n') == 0
