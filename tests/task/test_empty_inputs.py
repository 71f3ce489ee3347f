"""Inputs without a record hold windows back, and a run says so, once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

import ripple as rp
from ripple.core.event_text import line_of
from ripple.core.events import InputsEmpty
from ripple.model.window import watermark
from ripple.task.empty_inputs import EmptyInputs
from tests.records import Trade

if TYPE_CHECKING:
    from ripple.core.events import Event
    from ripple.engine.machine import Engine

NAMES = ("trades/0", "trades/1", "trades/2")


def engine(waiting: int, *watermarks_ns: int) -> Engine:
    state = {
        "waiting_count": waiting,
        "watermarks_ns": dict(zip(NAMES, watermarks_ns, strict=True)),
    }
    return cast("Engine", SimpleNamespace(**state))


def notices(
    emit: Any,
    *,
    is_awaited: bool = False,
    is_divided: bool = False,
    received: tuple[str, ...] = (),
    **source: Any,
) -> EmptyInputs:
    trades = rp.Pipeline("p").source("trades", Trade, **source).partition("by", key="symbol")
    plan = trades.window("w", rp.Tumbling("1s")).fold("bars", n=rp.count()).sink("out").plan()
    return EmptyInputs(
        plan, NAMES, emit, is_awaited=is_awaited, is_divided=is_divided, received=received
    )


def test_inputs_without_a_record_are_named_once_with_the_way_out() -> None:
    told: list[Event] = []
    found = notices(told.append)
    none = watermark.NONE
    found.look(engine(0, 5, none, none))  # nothing waits
    found.look(engine(1, none, none, none))  # nothing has come at all
    assert told == []
    for _ in range(2):
        found.look(engine(1, 5, none, none))
    assert told == [InputsEmpty("trades", NAMES[1:], "bars")]
    line = line_of(told[0]) or ""
    assert line.startswith("trades/1, trades/2 have no record so far: rows of 'bars' that wait")
    assert line.endswith(".source('trades', ..., idle=\"30s\")")


@pytest.mark.parametrize("watermarks_ns", [(5, 6, 7), (watermark.NONE, 6, 7)])
def test_inputs_with_records_and_those_that_may_be_idle_are_not_named(
    watermarks_ns: tuple[int, ...],
) -> None:
    told: list[Event] = []
    idle = {"idle": "1s"} if watermark.NONE in watermarks_ns else {}
    notices(told.append, **idle).look(engine(1, *watermarks_ns))
    assert told == []


def test_a_later_stage_waits_for_inputs_of_a_partition_without_any_record() -> None:
    told: list[Event] = []
    found = notices(told.append, is_awaited=True)
    found.look(engine(0, *[watermark.NONE] * 3))
    assert told == [InputsEmpty("trades", NAMES, "bars")]


def test_inputs_that_may_be_idle_are_named_where_reading_ends_before_their_markers() -> None:
    told: list[Event] = []
    found = notices(told.append, idle="30s")
    held = engine(1, 5, watermark.NONE, watermark.NONE)
    found.look(held)
    assert told == []
    found.look(held, is_over=True)
    assert told == [InputsEmpty("trades", NAMES[1:], "bars", is_idle=True)]
    assert (line_of(told[0]) or "").endswith("or after its idle= in a run that goes on (--follow)")


def test_sources_divided_anew_are_named_by_the_task_that_divides_them() -> None:
    told: list[Event] = []
    receiver = notices(told.append, received=("trades",))
    receiver.look(engine(1, 5, watermark.NONE, watermark.NONE))
    assert told == []
    divider = notices(told.append, is_awaited=True, is_divided=True)
    divider.look(engine(0, 5, watermark.NONE, watermark.NONE))
    assert told == [InputsEmpty("trades", NAMES[1:], "bars", is_divided=True)]
    assert (line_of(told[0]) or "").endswith("in a cluster that divides no records anew")
