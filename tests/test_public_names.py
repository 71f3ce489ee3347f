"""``import ripple`` is lazy, and looks to its users as if it were not."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import ripple


def _for_type_checkers() -> dict[str, str]:
    """Return the home of each name as the source says it to type checkers."""
    assert ripple.__file__ is not None
    (block,) = (
        node
        for node in ast.parse(Path(ripple.__file__).read_text()).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    return {
        alias.name: imports.module
        for imports in block.body
        if isinstance(imports, ast.ImportFrom) and imports.module
        for alias in imports.names
    }


def test_type_checkers_and_the_interpreter_find_the_same_names_in_the_same_homes():
    assert _for_type_checkers() == ripple._HOME_OF


@pytest.mark.parametrize("name", ripple.__all__)
def test_a_name_is_what_its_home_calls_so(name: str):
    assert getattr(ripple, name) is getattr(importlib.import_module(ripple._HOME_OF[name]), name)
    assert getattr(ripple, name) is vars(ripple)[name]  # from now on as fast as any other


def test_all_names_are_listed():
    assert set(ripple.__all__) < set(dir(ripple))
    assert {"__version__", "__doc__", "errors"} < set(dir(ripple))


def test_a_star_brings_all_names():
    names: dict[str, object] = {}
    exec("from ripple import *", names)
    assert set(ripple.__all__) < set(names)
    assert "spark" not in names  # what everybody calls a session


def test_spark_is_there_when_it_is_first_used_and_no_sooner():
    program = (
        "import sys, ripple as rp; assert 'ripple.spark' not in sys.modules; "
        "print(rp.spark is sys.modules['ripple.spark'], 'pyspark' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "False"]


def test_a_chain_takes_no_time_to_import_joins():
    program = (
        "import sys, ripple as rp; from tests.records import SizedTrade; "
        "chain = rp.Pipeline('p').source('trades', SizedTrade).partition('by', key='symbol'); "
        "rp.Engine(chain.fold('n', n=rp.count()).sink('out').plan()); "
        "print(*[name for name in sys.modules if name.startswith('ripple.') and 'join' in name])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_another_name_is_an_attribute_error_and_a_module_is_still_a_module():
    with pytest.raises(AttributeError, match="module 'ripple' has no attribute 'Pipelin'"):
        _ = ripple.Pipelin
    from ripple.core import sexp

    assert sexp.__name__ == "ripple.core.sexp"


def test_the_engine_shows_its_arguments():
    named = inspect.signature(ripple.Engine).parameters
    assert [*named][:3] == ["plan", "partition", "inputs"]
    assert named["start"].kind is inspect.Parameter.KEYWORD_ONLY
