"""The states of a task."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from ripple.connectors.endings import Endings
from ripple.task.lifecycle import TRANSITIONS, PartitionTask, TaskState
from ripple.task.one_shot import at_once

CREATED, RESTORING, RUNNING, CLOSING, CLOSED = TaskState


class Recorded(PartitionTask):
    """A task of three steps that notes in which state each is called; it may fail in one."""

    def __init__(self, fails_in: TaskState | None = None, *, stops_in: int = 9) -> None:
        super().__init__(lambda: self.steps >= stops_in)
        self.steps = 0
        self.seen: list[TaskState] = []
        self._fails_in = fails_in

    @asynccontextmanager
    async def _restored(self, endings: Endings) -> AsyncIterator[Recorded]:
        endings.add(self.released)
        yield self

    def _note(self) -> None:
        self.seen.append(self.state)
        if self.state is self._fails_in:
            raise OSError(self.state.value)

    async def released(self) -> None:
        self.seen.append(self.state)

    async def catch_up(self) -> bool:
        self._note()
        return not self._stop()

    async def step(self) -> bool:
        self._note()
        self.steps += 1
        return self.steps < 3

    async def finish(self) -> None:
        self._note()


def test_every_state_leads_to_the_end() -> None:
    assert set(TRANSITIONS) == set(TaskState)
    for state, nexts in TRANSITIONS.items():
        assert (CLOSED in nexts) == (state not in (CREATED, CLOSED))


def test_states_follow_each_other_until_the_input_ends() -> None:
    task = Recorded()
    assert task.state is CREATED
    at_once(task.run())
    assert task.seen == [RESTORING, RUNNING, RUNNING, RUNNING, CLOSING, CLOSING]
    assert task.state is CLOSED


@pytest.mark.parametrize("steps", [0, 2])
def test_stop_ends_it_between_two_steps(steps: int) -> None:
    task = Recorded(stops_in=steps)
    at_once(task.run())
    finishing = [CLOSING] if steps else []
    assert task.seen == [RESTORING, *[RUNNING] * steps, *finishing, CLOSING if steps else RESTORING]
    assert task.state is CLOSED


@pytest.mark.parametrize("state", [RESTORING, RUNNING, CLOSING])
def test_error_releases_everything_and_closes(state: TaskState) -> None:
    task = Recorded(state)
    with pytest.raises(OSError, match=state.value):
        at_once(task.run())
    assert task.seen[-2:] == [state, state]
    assert task.state is CLOSED


def test_second_run_is_a_bug() -> None:
    task = Recorded()
    at_once(task.run())
    with pytest.raises(AssertionError, match="RESTORING after"):
        at_once(task.run())
