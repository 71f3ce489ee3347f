"""Folds over results of every type: in one process, and over each kind of edge."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import ripple as rp
from ripple.model.pipeline.stages import EdgeKind
from ripple.model.pipeline.topology import stages_of
from ripple.model.schema.notation import type_to_sexp
from ripple.testing import check_pipeline
from tests.engine.machine.staged import Spread, whole_run


@rp.record(version=1)
class Seen:
    symbol: str
    text: str
    maybe: str | None
    flag: bool
    size: int
    price: float | None
    tags: list[str]
    t: rp.Timestamp


@rp.record(version=1)
class Mapped:
    symbol: str
    n: int
    m_text: str
    m_maybe: str | None
    m_flag: bool
    m_at: rp.Timestamp | None
    m_tags: list[str]


def own(*fields: str, of: type = str, merges: bool = False) -> Any:
    """Return an aggregate of one's own: which values there are, as a text or in another type."""

    def moved(state: dict[str, int], values: tuple[Any, ...], by: int) -> dict[str, int]:
        counts = {**state, repr(values): state.get(repr(values), 0) + by}
        return {value: count for value, count in counts.items() if count}

    def merged(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
        return {value: one.get(value, 0) + other.get(value, 0) for value in {**one, **other}}

    return rp.custom(
        *fields,
        init=dict,
        add=lambda s, *x: moved(s, x, 1),
        remove=lambda s, *x: moved(s, x, -1),
        merge=merged if merges else None,
        result=lambda s: " ".join(sorted(s)) if of is str else of(len(s)),
        type=of,
        name=f"own_{of.__name__}",
    )


RESULTS: dict[str, Any] = {
    "first_text": rp.first("text"), "last_maybe": rp.last("maybe"), "max_text": rp.max("text"),
    "first_flag": rp.first("flag"), "min_flag": rp.min("flag"), "last_size": rp.last("size"),
    "max_price": rp.max("price"), "last_t": rp.last("t"), "mean": rp.mean("size"),
    "kinds": rp.count_distinct("maybe"), "top": rp.top_k("text", 2), "n": rp.count(),
    "last_row": rp.last_row("maybe"), "best": rp.arg_max("size", "text"),
    "rows": rp.top_rows(2, "price", ["text", "maybe", "flag"]),
    "own_text": own("text", "flag"), "own_flag": own("maybe", of=bool), "own_list": own("tags"),
}  # fmt: skip
DERIVED: dict[str, Any] = {
    "d_text": rp.when(rp.col("n") > 2).then("big").otherwise("small"),
    "d_maybe": rp.when(rp.col("n") > 2).then(rp.col("last_maybe")).otherwise("none"),
    "d_flag": rp.col("first_flag") & (rp.col("n") > 1),
    "d_price": rp.col("max_price") * 2.0,
}
ANY: dict[str, Any] = {"own": own, "merged": lambda x: own(x, merges=True)}
ORDERED: dict[str, Any] = {
    "min": rp.min, "max": rp.max, "distinct": rp.count_distinct, "top": lambda x: rp.top_k(x, 2),
    "arg": lambda x: rp.arg_min(x, "n"), "rows": lambda x: rp.top_rows(2, x, [x, "n"]),
    "of_expr": lambda x: rp.max(rp.when(rp.col("n") > 1).then(rp.col(x)).otherwise(rp.col(x))),
}  # fmt: skip
NUMBERS: dict[str, Any] = {
    "sum": rp.sum, "stddev": rp.stddev, "vwap": lambda x: rp.vwap(x, "n"), "median": rp.median,
}  # fmt: skip


def mapped(row: Any) -> Any:
    text = row.first_text
    return Mapped(row.symbol, row.n, f"{text}!", text, row.kinds > 1, row.last_t, [text, text])


def below(window: Any = None) -> rp.Pipeline:
    p = rp.Pipeline("p").source("seen", Seen, time="t", out_of_order=3).partition("a", key="symbol")
    return (p if window is None else p.window("w", window, lateness=4)).fold("low", **RESULTS)


def above(low: rp.Pipeline, names: list[str], key: Any, *, decomposes: bool = False) -> rp.Plan:
    """Return a fold by every aggregate that takes them over results, and those below."""
    fields = low.sink("o").plan().folds[0].row
    types = {field.name: str(type_to_sexp(field.type)) for field in fields}
    taken: dict[str, Any] = {}
    for name in names:
        has_order = "List" not in types[name]
        is_number = "Int" in types[name] or "Float" in types[name]
        ordered = {what: make for what, make in ORDERED.items() if (name, what) != ("n", "rows")}
        makers = {**ANY, **(ordered if has_order else {}), **(NUMBERS if is_number else {})}
        for what, make in makers.items():
            if make(name).decomposes or not decomposes:
                taken[f"{name}_{what}"] = make(name)
    groups = low.partition("b", key=key, partitions=2 if key else None)
    return groups.fold("high", **taken).sink("o").sink("rows", of="low").plan()


def events(count: int) -> list[dict[str, Any]]:
    random, now = Random(count), 0
    listed: list[dict[str, Any]] = []
    for _ in range(count):
        now += random.choice([0, 0, 1, 1, 2, 7])
        listed.append({
            "symbol": f"S{random.randrange(5)}", "text": random.choice(["", "ä", "b", "zz"]),
            "maybe": random.choice(["x", "y", None]), "flag": random.random() < 0.5,
            "size": random.randrange(4), "price": random.choice([0.5, -1.0, None]),
            "tags": random.choice([[], ["q"], ["q", "r"]]),
            "t": max(0, now - random.choice([0, 0, 0, 2, 12])),
        })  # fmt: skip
    return listed


NAMES = [*RESULTS, *DERIVED]
MADE = ["m_text", "m_maybe", "m_flag", "m_at", "m_tags"]


@pytest.mark.parametrize("key", [(), "d_text"])
def test_every_aggregate_takes_every_result_that_it_may(key: Any) -> None:
    check_pipeline(
        above(below().derive("more", **DERIVED), NAMES, key), events(8), (4,), restarts=(5,)
    )


def test_results_of_a_map_are_taken_like_results() -> None:
    low = below().map("made", mapped, into=Mapped)
    check_pipeline(above(low, MADE, ()), events(8), (4,), restarts=(5,))


@pytest.mark.parametrize(
    ("kind", "window", "key"),
    [
        (EdgeKind.PARTIAL, None, "d_text"),
        (EdgeKind.ROW, None, "d_text"),
        (EdgeKind.ROW, rp.Tumbling(10), "window_start_ns"),
        (EdgeKind.EVENT, rp.Tumbling(10), "d_text"),
    ],
)
def test_results_of_every_type_pass_each_kind_of_edge(
    kind: EdgeKind, window: Any, key: str
) -> None:
    low = below(window).derive("more", **DERIVED)
    plan = above(low, NAMES, key, decomposes=kind is EdgeKind.PARTIAL)
    (_, stage) = stages_of(plan)
    assert stage.edge is not None
    assert stage.edge.kind is kind
    spread = Spread(plan, events(16), 2, Random(0))
    for _ in range(30):
        spread.step()
    spread.finish()
    assert spread.digests() == whole_run(plan, spread.shares).digests
