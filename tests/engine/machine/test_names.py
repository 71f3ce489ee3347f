"""Fields may have the names of the engine's own columns."""

from __future__ import annotations

from typing import Any

import pytest

import ripple as rp
from ripple.model.schema.types import Field, Int, Schema, String
from ripple.testing import check_pipeline
from tests.engine.machine.shapes import IDS, SHAPES
from tests.examples import EXAMPLES

KEYS = ("members", "elements", "unshown", "shown", "shown.n", "shown.total", "failed_step", "x.sum")
RESULTS = (
    *("elements", "unshown", "shown", "members", "failed_reason", "window_end", "rest"),
    "result",
)


def held_to_the_reference(key: str, result: str, assigner: Any, trigger: Any) -> None:
    schema = Schema("e", (Field(key, String()), Field("x", Int()), Field("timestamp_ns", Int())))
    pipeline = rp.Pipeline("p").source("s", schema, out_of_order=10).partition("k", key=key)
    if assigner is not None:
        pipeline = pipeline.window("w", assigner, trigger=trigger, lateness=60)
    pipeline = (
        pipeline.fold(
            "f", n=rp.count(), total=rp.sum("x"), sum=rp.first("x"), **{result: rp.count()}
        )
        .derive("d", q=rp.col("total") // (rp.col("n") - 2))
        .partition("again", key=key)
        .fold("g", **{result: rp.sum("q"), "rows": rp.count()})
        .sink("rows", of="f")
        .sink("groups")
    )
    events = [
        {key: "AB"[at % 3 == 2], "x": at, "timestamp_ns": at * 11 - 30 * (at % 5 == 4)}
        for at in range(24)
    ]
    check_pipeline(pipeline, events, restarts=[5, 6, 12, 13, 20])


@pytest.mark.parametrize("shape", range(len(SHAPES)), ids=IDS)
def test_fields_of_any_name_are_kept_by_snapshots(shape: int) -> None:
    """Each shape with some of the names, and each name with some of the shapes; or all with all."""
    names = list(zip(KEYS, RESULTS, strict=True))
    for key, result in names if EXAMPLES > 1 else names[shape % 3 :: 3]:
        held_to_the_reference(key, result, *SHAPES[shape])
