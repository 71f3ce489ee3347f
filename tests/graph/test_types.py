"""The stubs infer the types of cells, and mypy finds what does not fit."""

from __future__ import annotations

from mypy import api

GOOD = """
from typing import assert_type
from ripple.graph.cell import Cell, Leaf, MapN
from ripple.graph.graph import Graph

g = Graph()
price = g.leaf(100.0)
volume = g.leaf(1000)
assert_type(price, Leaf[float])
assert_type(g.map(price, lambda p: p * 2.0), Cell[float])
assert_type(g.map2(price, volume, lambda p, v: f"{p}{v}"), Cell[str])
assert_type(g.map_n([price, volume], lambda p, v: 1), MapN[int])
total = g.incr_fold([price], 0.0, lambda t, v: t + v, lambda t, v: t - v)
assert_type(total.value, float)
assert_type(g.bind(volume, lambda v: price).value, float)
assert_type(g.output(total).value, float)
price.observe(lambda change: assert_type(change.new, float))
"""
BAD = 'price.set("high")\ng.map(price, str.upper)\n'


def test_cells_have_the_types_of_their_functions(tmp_path):
    """Only the last two lines are wrong."""
    path = tmp_path / "cells.py"
    path.write_text(GOOD + BAD)
    report, _, _ = api.run(["--strict", "--no-error-summary", str(path)])
    last = len(GOOD.splitlines())
    found = [line.split(":")[1] for line in report.splitlines()]
    assert found == [str(last + 1), str(last + 2)], report
