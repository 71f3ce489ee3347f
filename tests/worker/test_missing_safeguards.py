"""Clusters without one of their safeguards: the events that reveal its absence."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from ripple.testing.cluster.trial import ClusterTrial
from tests.worker import trials
from tests.worker.moves import STEPS, Move
from tests.worker.seen import Seen, Story, run_story


async def moves(seen: Seen) -> None:
    """A partition moves by plan, while there is still much to come."""
    move = Move(seen)
    move.begin()
    await seen.until(lambda: STEPS["the move is complete"](move), "it does not move")


async def dies(seen: Seen) -> None:
    """The owner of a later stage's partition dies again and again, and its senders go on."""
    last = len(seen.shares) - 1
    for _ in range(3):
        await asyncio.sleep(2)
        name = seen.owner(last)
        seen.cluster.host(name).kill()
        await asyncio.sleep(4)
        seen.scene.start(name)
        await seen.owned()


DOCUMENT = Path(__file__).parents[2] / "docs" / "simulation.md"
FAULTS = 37  # of the design's list
SEED = 2  # nearly any will do
RARELY: dict[str, Any] = {"rarely": True, "partitions": 2}

# What goes on, over what, and what it is found out by.
MISSED: dict[str, tuple[Story, ClusterTrial, dict[str, Any], str]] = {
    "fence_check": (moves, trials.windows, {}, "I4"),
    "read_back": (dies, trials.rows, RARELY, "the cluster has|I16"),
}


@pytest.mark.parametrize("safeguard", MISSED)
def test_absence_of_a_safeguard_is_seen_at_once(safeguard: str) -> None:
    story, trial, shape, why = MISSED[safeguard]
    with pytest.raises(AssertionError, match=why):
        run_story(story, trial, seed=SEED, without=(safeguard,), alongside=True, **shape)
    run_story(story, trial, seed=SEED, alongside=True, **shape)


def test_document_says_where_the_absence_of_each_safeguard_is_found() -> None:
    root = Path(__file__).parents[2]
    code = "".join(
        path.read_text()
        for part in ("ripple", "worker", "coordinator")
        for path in (root / part).rglob("*.py")
    )
    used = set(re.findall(r'guards\(\s*"(\w+)"', code))
    rows = re.findall(r"^\| (`.*) \| .*: `(tests/.*\.py)` \|$", DOCUMENT.read_text(), re.MULTILINE)
    named = {
        (name, path)
        for names, path in rows
        for name in re.findall(r"`(\w+)`", names)
        if name in used
    }
    assert {name for name, _ in named} == used
    for name, path in named:
        assert f'"{name}"' in (root / path).read_text(), (name, path)


def test_document_names_every_fault_that_has_a_test_and_where_that_is() -> None:
    root = Path(__file__).parents[2]
    faults = DOCUMENT.read_text().partition("## Named faults")[2].partition("## ")[0]
    rows = re.findall(r"^\| (`test_.*`) \| `(tests/[\w/.]+)`", faults, re.MULTILINE)
    named = [(name, path) for names, path in rows for name in re.findall(r"`(\w+)`", names)]
    assert len({name for name, _ in named}) == len(named) == FAULTS
    for name, path in named:
        files = [root / path] if path.endswith(".py") else sorted((root / path).rglob("*.py"))
        assert any(f"def {name}(" in file.read_text() for file in files), (name, path)
