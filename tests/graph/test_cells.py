"""Cells as the book's first pipeline uses them."""

from __future__ import annotations

from ripple.graph.graph import Graph


def test_price_changes_recomputes_three_nodes():
    g = Graph()
    price = g.leaf(100.0)
    volume = g.leaf(1000)
    doubled = g.map(price, lambda p: p * 2.0)
    notional = g.map2(price, volume, lambda p, v: p * v)
    assert (doubled.value, notional.value) == (200.0, 100_000.0)
    price.set(150.0)
    g.stabilize()
    assert (doubled.value, notional.value) == (300.0, 150_000.0)
    assert g.last_recompute_count == 3
