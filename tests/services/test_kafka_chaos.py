"""Broker and store among the victims, for a minute; ``make chaos`` runs longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.services.kafka_chaos import VENUES, Plan, disturb
from tests.services.missing import MissingError, skip

pytestmark = pytest.mark.services


async def test_output_is_exact_while_leaders_move_among_three_brokers(tmp_path: Path) -> None:
    plan = Plan(trades=20_000, events=9, seed=2, pause_s=3.0, brokers=3)
    try:
        done = await disturb(plan, tmp_path, lambda _: None)
    except MissingError as error:
        skip(error)
    assert len(done.events) == plan.events
    assert done.moves > 0


async def test_output_is_exact_with_repartition_topics(tmp_path: Path) -> None:
    plan = Plan(trades=20_000, events=7, seed=3, pause_s=3.0, story=VENUES)
    try:
        done = await disturb(plan, tmp_path, lambda _: None)
    except MissingError as error:
        skip(error)
    assert len(done.events) == plan.events


async def test_committed_output_is_exact_under_chaos(tmp_path: Path) -> None:
    plan = Plan(trades=20_000, events=7, seed=1, pause_s=3.0)
    try:
        done = await disturb(plan, tmp_path, lambda _: None)
    except MissingError as error:
        skip(error)
    assert len(done.events) == plan.events  # each kind once
    assert done.cuts > plan.events
