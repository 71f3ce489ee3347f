"""The stubs infer the types of cells, and mypy finds misfits."""

from __future__ import annotations

import pytest
from mypy import api

GOOD = """
from typing import assert_type
from ripple.engine.graph.cell import Cell, Leaf, MapN
from ripple.notebook.graph import Graph

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
COLUMNS = """
from dataclasses import dataclass
from typing import assert_type
from ripple.model.expression import col
from ripple.engine.graph.cell import Cell
from ripple.notebook.graph import Graph
from ripple.notebook.keyed import LeafColumn
from ripple.notebook.map_column import MapColumn

@dataclass
class Quote:
    bid: float
    ask: float

g = Graph()
price = g.column(float, name="price")
size = g.column(int, key=price, name="size")
quotes = g.column(Quote, key=int)
assert_type(price, LeafColumn[str, float])
assert_type(size, LeafColumn[str, int])
assert_type(quotes[7], Quote)
assert_type(price.sum(), Cell[float])
assert_type(size.sum().value, int)
assert_type(g.map(quotes, lambda q: q.ask - q.bid), MapColumn[int, float])
product: MapColumn[str, float] = g.map([price, size], lambda p, s: p * s)
g.map([price, size, g.leaf(1.0, name="fx")], col("price") * col("fx")).mean()
g.map(price, lambda a: -a["price"], batch=True)
g.column({"x": float, "y": str | None}, key=(str, int)).set(("A", 1), x=1.0)
assert_type(quotes.fold(0.0, lambda t, q: t + q.bid, lambda t, q: t - q.bid), Cell[float])
"""
COLUMNS_BAD = 'price["A"] = "high"\nsize[1]\nquotes.set(1, 2.0)\n'


@pytest.mark.services
def test_nodes_have_the_types_of_their_functions(tmp_path):
    """Only the lines of the second part of each file are wrong."""
    wrong = []
    for name, good, bad in (("cells", GOOD, BAD), ("columns", COLUMNS, COLUMNS_BAD)):
        path = tmp_path / f"{name}.py"
        path.write_text(good + bad)
        first = len(good.splitlines()) + 1
        wrong += [f"{path.name}:{first + i}" for i in range(len(bad.splitlines()))]
    files = [str(path) for path in tmp_path.glob("*.py")]
    report, _, _ = api.run(["--strict", "--no-error-summary", *files])
    # mypy's cache has the errors of equal files of an earlier run with the paths of then.
    places = (line.partition(": error:") for line in report.splitlines())
    found = [place.rpartition("/")[2] for place, is_error, _ in places if is_error]
    assert sorted(found) == sorted(wrong), report
