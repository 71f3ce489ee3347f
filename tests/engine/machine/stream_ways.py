"""Ways to join two streams of ticks, and ways from the rows of a stream to sinks."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

import ripple as rp
import ripple.model.aggregate as ra
from ripple.model.pipeline.builder import Pipeline

# Ways to join ticks with more of them: by keys with nulls, or by two.
KEYS = [
    {"on": "symbol"},
    {"on": "venue"},
    {"on": ["symbol", "venue"]},
    {"left_on": "symbol", "right_on": "venue"},
    {"on": "size"},
]

# The source of each tick.
sides = st.lists(st.sampled_from(["ticks", "more"]), min_size=60, max_size=60)


# Ways to sinks, each with names of its own.
def shown(rows: Pipeline) -> Pipeline:
    return rows.sink("out")


def strict(rows: Pipeline) -> Pipeline:
    """Refuse rows, which are lost in all branches behind."""
    return rows.derive("d1", part=10 // (rp.col("size") - 3)).sink("parts")


def running(rows: Pipeline) -> Pipeline:
    """Fold joined rows by key."""
    some = rows.filter("g2", rp.col("size") > 0)
    keyed = some.derive("g2k", of=rp.col("symbol").fill_null("")).partition("g2p", key="of")
    members = {"n": ra.count(), "matched": ra.count("price_right"), "last": ra.last("size")}
    return keyed.fold("counted", **members).sink("counted-out")


def windowed(rows: Pipeline) -> Pipeline:
    """Fold joined rows by key and window."""
    sized = rows.derive("g3k", of=rp.col("size").fill_null(-1))
    keyed = sized.partition("g3p", key="of").window("w3", rp.Session(60))
    return keyed.fold("gw", n=ra.count(), last=ra.last("price_right")).sink("w-out")


def ended(rows: Pipeline, ways: list[Any], base: Pipeline) -> Pipeline:
    """Let rows go all ways, beside all rows of a base and a fold of it."""
    first, *rest = (way(rows) for way in ways)
    for branch in rest:
        first = first.also(branch)
    late = base.partition("p0", key="symbol").window("w0", rp.Tumbling(40), lateness=5)
    return first.also(base.sink("all")).also(late.fold("f0", n=ra.count()).sink("f0-out"))
