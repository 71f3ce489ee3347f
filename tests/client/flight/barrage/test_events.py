"""An output of events as a ticking table: the newest rows, each added once and removed once."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import ripple as rp
from ripple.client.flight.barrage.batches import Update
from ripple.client.flight.barrage.messages import Asked
from ripple.client.flight.barrage.rows import Rows
from ripple.client.flight.barrage.subscription import Subscription
from ripple.client.outputs import event_rows
from ripple.client.outputs.event_rows import EventRows
from ripple.engine.changes.layout import layout_of
from ripple.engine.machine import Engine
from ripple.engine.operators.stream_rows import identified_schema
from tests.client.flight.barrage.test_subscription import Client

KEPT = 30


@rp.record(version=1)
class Tick:
    symbol: str
    size: int | None


@pytest.mark.parametrize("slow", [1, 4, 40])
def test_clients_show_the_newest_events(slow: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_rows, "ROWS_MAX", KEPT)
    random = Random(slow)
    ticks = rp.Pipeline("desk").source("ticks", Tick)
    large = ticks.flat_map("twice", lambda row: [row] * (row.size or 0), into=Tick)
    plan = large.sink("all").plan()
    engine = Engine(plan)
    engine.keep_newest("all", KEPT, 1 << 20)
    schema = identified_schema(plan.output("all").fields)
    layout = layout_of(schema)
    kept, rows = EventRows(layout, schema, {}), Rows(layout)
    known, client, cut = Subscription(), Client(), None
    known.ask(Asked(b""), len(rows.schema))
    shared: dict[Any, Update] = {}
    offset = 0
    for turn in range(120):
        given = [
            {"symbol": random.choice("ab"), "size": random.choice([None, 1, 2])}
            for _ in range(random.choice([1, 3, 9]))
        ]
        engine.apply("ticks", given)
        offset += len(given)
        engine.stabilize()
        # What the feed does with each batch of a partition.
        changes = engine.showing_events("all").outgoing_to([0])[0]
        came = kept.add(cut, changes)
        cut = changes.cut
        rows.apply(0, came.dropped)
        rows.apply(0, came.rows)
        shared.clear()
        if turn % slow == 0 and (update := known.news(rows, shared)) is not None:
            client.take(update, is_view=False)
            shown = client.seen(list(range(len(rows.schema))))
            there = [list(row.values()) for row in kept.rows().to_pylist()]
            assert sorted(map(repr, shown)) == sorted(map(repr, there))
    assert len(client.rows) == KEPT
