"""What was seen before it was committed is taken back where the next owner has not come so far."""

from __future__ import annotations

import asyncio
from itertools import count
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from ripple.client.outputs import OutputSubscription
from ripple.engine.machine import Engine
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.exchange.edges import shown_name, shown_of
from ripple.exchange.limits import ExchangeLimits
from ripple.exchange.publication import Publication
from ripple.exchange.subscription import Subscription
from ripple.exchange.wire.edge_messages import Follow
from tests.engine.machine.stage_plans import PLANS, trades

PLAN = PLANS["by-venue"]
OUTPUT = PLAN.outputs[0].name
SCHEMA = pa.schema(arrow_fields(PLAN.source.fields))
EVENTS = trades(Random(1), 40)
LIMITS = ExchangeLimits()


class Owner:
    """A life of the partition, and the way to it."""

    has_room = True

    def __init__(self, epoch: int, following: Subscription) -> None:
        self.engine, self.following = Engine(PLAN), following
        edge = following.edge
        self.sending = Publication(edge, 0, epoch, targets=1, limits=LIMITS, wake=lambda: None)

    def has(self, _: Any) -> bool:
        return False

    def send(self, message: Any) -> None:
        if isinstance(message, Follow):
            self.sending.follow(self, message)

    def return_credit(self, stream: Any, turn: int, rows: int) -> None:
        self.sending.granted(self, stream.target, turn, rows)

    def send_changes(self, stream: Any, turn: int, epoch: int, changes: Any) -> None:
        self.following.arrived(
            self, stream.sender, turn, epoch, changes, start=0, more=False, receipt=None
        )

    def drop(self, _: Any) -> None:
        """Nothing waits here."""

    def read(self, end: int) -> None:
        """Take events in up to an offset, and offer what that shows."""
        (begin,) = self.engine.cut.values()
        batch = pa.RecordBatch.from_pylist(EVENTS[begin:end], SCHEMA)
        self.engine.apply(PLAN.source.name, batch, end)
        self.engine.stabilize()
        is_uncommitted = self.following.edge.is_uncommitted
        self.sending.offer(self.engine.showing(OUTPUT, uncommitted=is_uncommitted))

    def rows(self) -> list[str]:
        return sorted(map(repr, self.engine.table(OUTPUT).to_pylist()))


@pytest.mark.parametrize("uncommitted", [False, True])
def test_new_owner_that_is_behind_the_former_one_replaces_its_rows(uncommitted: bool) -> None:
    edge = shown_of(PLAN)[shown_name(OUTPUT, uncommitted=uncommitted)]
    turns = count(1).__next__
    following = Subscription(
        edge, 0, 1, limits=LIMITS, turns=turns, wake=lambda: None, refresh=lambda: None
    )
    seen = OutputSubscription(OUTPUT, following, 1, asyncio.Event(), lambda _: "w/0")

    def rows() -> list[str]:
        return sorted(map(repr, seen.shown().table.to_pylist()))

    first = Owner(1, following)
    following.start()
    following.route(0, first, 1)
    first.read(20)
    first.read(30)
    assert len(seen.take()) == 2
    assert rows() == first.rows()

    second = Owner(2, following)
    following.route(0, second, 2)
    second.read(10)
    first.read(35)  # nobody has told it yet
    changes = seen.take()
    if uncommitted:
        (change,) = changes
        assert change.since == {"trades": 30}
        assert change.position.epoch == 2
        assert change.position.cut == {"trades": 10}
        assert rows() == second.rows()
    else:
        assert changes == []
    second.read(25)
    second.read(40)
    seen.take()
    assert rows() == second.rows()
    assert seen.shown().cuts[0].cut == {"trades": 40}
