"""The house rules that a machine can check: import direction, compiled modules, no stray paths."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# What a part may import of the others. Whatever is not listed is refused, so an arrow that is
# turned round or a new part without a place in the picture fails here.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "sexp": {"errors"},
    "hashing": set(),
    "schema": {"errors", "sexp", "expression", "hashing"},  # a record's fields are expressions
    "expression": {"errors", "sexp", "schema"},
    "aggregate": {"errors", "expression", "schema"},
    "graph": {"errors", "sexp", "hashing", "schema", "aggregate", "expression"},
    "window": {"errors", "graph", "aggregate"},
    "delta": {"errors", "sexp", "hashing", "schema", "graph", "aggregate"},
    "topology": {"errors", "sexp", "schema", "expression"},
    "plan": {"errors", "sexp", "schema", "expression", "window", "topology", "description"},
    "stages": {"plan"},
    "description": {"plan", "stages", "schema", "expression", "window", "errors", "aggregate"},
    "pipeline": {
        *("errors", "sexp", "schema", "expression", "aggregate", "window", "plan", "topology"),
        "pipeline_checks",
    },
    "pipeline_checks": {"errors", "schema", "expression", "aggregate", "plan", "window"},
    "engine": {
        *("errors", "hashing", "schema", "expression", "aggregate", "graph", "window", "plan"),
    },
    "wire": {"errors", "sexp", "schema", "delta", "hashing"},
    "registry_file": {"errors", "schema"},
    "world": {"errors"},
    "log": {"errors", "schema", "sexp", "wire", "world", "connectors", "hashing"},
    "store": {"errors", "world"},
    "fenced": {"errors", "world"},
    "checkpoint": {"errors", "engine", "world", "wire", "plan", "schema", "hashing", "fenced"},
    "connectors": {"errors", "schema", "hashing", "plan", "log", "wire", "world"},
    "runner": {
        *("errors", "connectors", "engine", "plan", "pipeline", "world", "checkpoint", "log"),
    },
    "recovery": {
        *("errors", "connectors", "engine", "plan", "pipeline", "world", "checkpoint", "log"),
        "fenced",
        *("schema", "hashing", "aggregate", "sexp", "topology", "window"),
    },
    "testing": {"*"},
    "cli": {"*"},
}
# Kept light for whoever only imports ripple.
SLOW_MODULES = ("pyspark", "grpc", "pyarrow.dataset", "pyarrow.parquet", "pandas", "ripple.wire")


def _part(module: str) -> str:
    return module.split(".")[1]


def _imports(path: Path) -> set[str]:
    """Return the modules of ripple that a file names in imports and cimports."""
    text = path.read_text()
    if path.suffix == ".py":
        found: set[str] = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                if node.module == "ripple":
                    found.update(f"ripple.{alias.name}" for alias in node.names)
                found.add(node.module)
    else:
        found = set(re.findall(r"^\s*from (ripple[\w.]*) c?import", text, re.MULTILINE))
        found |= set(re.findall(r"^\s*c?import (ripple[\w.]*)", text, re.MULTILINE))
    return {name for name in found if name.startswith("ripple.")}


def _sources() -> list[Path]:
    package = ROOT / "ripple"
    return sorted(p for s in ("*.py", "*.pyx", "*.pxd") for p in package.rglob(s))


def test_imports_point_one_way() -> None:
    wrong = []
    for path in _sources():
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if module in {"ripple.__init__"}:
            continue
        own = _part(module)
        allowed = MAY_IMPORT.get(own)
        assert allowed is not None, f"{own} has no place in the picture of imports"
        for imported in _imports(path):
            part = _part(imported)
            if part != own and "*" not in allowed and part not in allowed:
                wrong.append(f"{module} imports {imported}")
    assert not wrong, "\n".join(wrong)


def test_only_the_spark_part_imports_pyspark() -> None:
    for path in _sources():
        if "spark" not in path.parts:
            assert not re.search(r"^\s*(import|from) pyspark", path.read_text(), re.MULTILINE), path


def _extensions() -> list[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return [module["name"] for module in settings["tool"]["setuptools"]["ext-modules"]]


def test_compiled_modules_are_those_on_disk_and_in_order() -> None:
    on_disk = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in (ROOT / "ripple").rglob("*.pyx")
    ]
    assert sorted(on_disk) == _extensions()


@pytest.mark.parametrize("name", _extensions())
def test_module_runs_compiled(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__file__ is not None
    assert module.__file__.endswith(tuple(EXTENSION_SUFFIXES)), module.__file__


def test_every_package_is_listed_for_installation() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    on_disk = {
        ".".join(path.parent.relative_to(ROOT).parts) for path in ROOT.glob("ripple/**/__init__.py")
    }
    assert {name for name in settings["packages"] if name.startswith("ripple")} == on_disk


def test_importing_ripple_loads_nothing_slow() -> None:
    code = f"import sys, ripple; print([m for m in {SLOW_MODULES!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "[]"


def test_versions_agree() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["project"]["version"] == importlib.import_module("ripple").__version__
