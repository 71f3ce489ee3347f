"""Snapshots and their text forms, in the shapes of the documentation."""

from __future__ import annotations

import json

import pytest

from ripple.core import sexp
from ripple.engine.graph import introspect

SEXP = """
((nodes
  ((id 0)(height 0)(is_dirty false)(kind leaf)(dependent_ids (2)))
  ((id 1)(height 0)(is_dirty false)(kind leaf)(dependent_ids (2)))
  ((id 2)(height 1)(is_dirty false)(kind map2)(dependent_ids ())))
 (stats (total_nodes 3)(dirty_nodes 0)(output_nodes 0)(max_height 1)))
"""

DOT = """digraph ripple {
  rankdir=TB;
  node [fontname="monospace" fontsize=10];

  n0 [label="leaf_0" shape=ellipse];
  n1 [label="leaf_1" shape=ellipse];
  n2 [label="map2_2" shape=box color=blue style=bold];

  n0 -> n2;
  n1 -> n2;

  // nodes=3 dirty=0 outputs=1 max_height=1
}
"""

DOT_BY_KIND = """digraph ripple {
  rankdir=TB;
  node [shape=box];
  leaf_0 [label="leaf: AAPL" shape=ellipse];
  leaf_1 [label="leaf: GOOG" shape=ellipse];
  map_0 [label="map: identity"];
  map_1 [label="map: identity"];
  fold_0 [label="fold: sum" shape=diamond];
  leaf_0 -> map_0;
  leaf_1 -> map_1;
  map_0 -> fold_0;
  map_1 -> fold_0;
}
"""


@pytest.fixture
def pair(g):
    price, size = g.leaf(2.5), g.leaf(4)
    return g, price, g.map2(price, size, lambda p, s: p * s)


def test_sexp_of_three_nodes_is_the_documented_one(pair):
    g, _, _ = pair
    assert introspect.to_sexp(introspect.snapshot(g)) == sexp.loads(SEXP)


def test_dot_of_three_nodes_is_the_documented_one(pair):
    g, _, product = pair
    g.output(product)
    assert introspect.to_dot(introspect.snapshot(g)) == DOT


def test_dot_by_kind_is_the_command_lines(g):
    leaves = [g.leaf(1.0, name="AAPL"), g.leaf(2.0, name="GOOG")]
    maps = [g.map(leaf, lambda v: v, name="identity") for leaf in leaves]
    g.fold(maps, 0.0, lambda a, v: a + v, name="sum")
    assert introspect.to_dot_by_kind(introspect.snapshot(g)) == DOT_BY_KIND


def test_dot_shows_a_dirty_node_and_quotes_its_name(pair):
    g, _, _ = pair
    g.leaf(1, name='say "hi"\n\\').set(2)
    assert '  n3 [label="say \\"hi\\"\\n\\\\" shape=ellipse color=red];' in introspect.to_dot(
        introspect.snapshot(g)
    )


def test_detail_counts_recomputations_and_cutoffs_of_each_node(pair):
    g, price, product = pair
    for value in (3.0, 3.0, -3.0):
        price.set(value)
        g.stabilize()
    price.set(9.0)
    snap = introspect.snapshot(g, values=True)
    assert [(n.recompute_count, n.cutoff_count, n.is_dirty) for n in snap.nodes] == [
        (2, 1, True),
        (0, 0, False),
        (2, 0, False),
    ]
    assert (snap.stats.dirty_nodes, snap.stats.last_recompute_count) == (1, 2)
    loaded = json.loads(introspect.to_json(snap))
    assert loaded["nodes"][product.id]["value_sexp"] == "-12.0"
    assert loaded["stats"]["total_nodes"] == 3
    detailed = sexp.dumps(introspect.to_sexp(snap, detail=True))
    assert "(is_output false)(kind map2)(dependent_ids())(value -12.0)" in detailed


@pytest.mark.parametrize(
    ("value", "expected"),
    [("a b", "a b"), (True, "true"), (None, []), (7, "7"), (object(), None)],
)
def test_value_sexp_of_plain_scalars_needs_no_serializer(g, value, expected):
    assert g.leaf(value).value_sexp() == expected


def test_serializer_gives_the_sexp_of_a_record(g):
    leaf = g.leaf((1, 2), serializer=lambda v: [str(x) for x in v])
    assert introspect.snapshot(g, values=True).nodes[leaf.id].value_sexp == ["1", "2"]


def test_snapshot_of_an_empty_graph_is_empty(g):
    snap = introspect.snapshot(g)
    assert (snap.nodes, snap.stats.max_height) == ((), 0)
    assert introspect.to_dot(snap).startswith("digraph ripple {")
