"""One changed row that goes straight through columns of one field to a sum, and the long way."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.core.errors import NodeError
from ripple.model.expression import col
from ripple.notebook.graph import Graph
from tests.examples import EXAMPLES

FLOATS = [
    0.0,
    -0.0,
    0.1,
    1.5,
    -1.5,
    1.75,
    1e300,
    -1e300,
    1e-300,
    5e-324,
    math.nan,
    math.inf,
    -math.inf,
]
INTS = [0, 1, -1, 7, 2**62, -(2**62), 2**63 - 1]
KEYS = "abc"


def bits(number: float) -> bytes:
    return b"nan" if math.isnan(number) else struct.pack("<d", number)


@settings(max_examples=EXAMPLES)
@given(st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(FLOATS)), max_size=30))
def test_floats_end_at_the_sums_that_the_long_way_has(steps: list[tuple[str, float]]) -> None:
    graphs: list[tuple[Graph, Any, Any, Any]] = []
    for long_way in (False, True):
        graph = Graph()
        price = graph.column(float, name="price")
        size = graph.column(int, key=price, name="size")
        product: Any = graph.map([price, size], col("price") * col("size"))
        half = graph.map(product, col("value") / 2.0)
        total = half.sum()
        if long_way:  # a second dependent
            half.count()
        price.apply(list(KEYS), [1.0, 2.0, 3.0])
        size.apply(list(KEYS), [1, 2, 3])
        graph.stabilize()
        graphs.append((graph, price, half, total))
    for key, value in steps:
        for graph, price, _, _ in graphs:
            price[key] = value
            graph.stabilize()
        (straight, _, mine, total), (other, _, theirs, expected) = graphs
        assert bits(total.value) == bits(expected.value)
        assert [bits(row) for row in mine.rows_at(np.arange(3))] == [
            bits(row) for row in theirs.rows_at(np.arange(3))
        ]
        assert straight.last_recompute_count == other.last_recompute_count
        assert total.recompute_count == expected.recompute_count
        assert (mine.rows_in, mine.rows_out) == (theirs.rows_in, theirs.rows_out)
        straight.check_invariants()


def test_failed_computation_names_the_map_and_is_retried() -> None:
    graph = Graph()
    number = graph.column(int)
    total = graph.map(number, 2 * col("value"), name="double").sum()
    tenfold = graph.map(total, lambda value: 10 * value)
    number.apply(list(KEYS), [1, 2, 3])
    graph.stabilize()
    for value in INTS:
        before = total.value, tenfold.value
        number["b"] = value
        if -(2**63) <= 2 * value < 2**63:
            graph.stabilize()
            assert total.value == 2 * (1 + value + 3)
            assert tenfold.value == 10 * total.value
        else:
            with pytest.raises(NodeError, match=r"'double'.* for the key 'b'"):
                graph.stabilize()
            assert (total.value, tenfold.value) == before
    number["b"] = 5
    graph.stabilize()
    assert (total.value, tenfold.value) == (18, 180)
    graph.check_invariants()


def test_an_output_tells_of_a_change_that_came_straight() -> None:
    graph = Graph()
    price = graph.column(float)
    total = graph.output(price.sum())
    price.apply(list(KEYS), [1.0, 2.0, 3.0])
    graph.stabilize()
    price["b"] = 4.0
    (change,) = graph.stabilize()
    assert (change.node, change.old, change.new) == (total, 6.0, 8.0)
    price["b"], price["c"] = 3.0, 4.0  # the same sum
    assert graph.stabilize() == ()
    price["b"] = 3.0
    assert graph.stabilize() == ()
    price["b"] = math.nextafter(3.0, 4.0)
    assert total.value == 8.0
    graph.stabilize()
    assert total.value == math.fsum([1.0, math.nextafter(3.0, 4.0), 4.0])
    graph.check_invariants()
