"""The states of a task."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from ripple.connectors.endings import Endings
from ripple.connectors.inputs import Signal
from ripple.task.lifecycle import TRANSITIONS, PartitionTask, TaskState
from ripple.task.one_shot import at_once
from ripple.task.spec import TaskContext

CREATED, RESTORING, STANDBY, RUNNING, CLOSING, CLOSED = TaskState


class Recorded(PartitionTask[None]):
    """A task of three batches that notes in which state each call comes; it may fail in one."""

    def __init__(self, fails_in: TaskState | None = None, *, stops_in: int = 9) -> None:
        context = TaskContext(stop=lambda: self.steps >= stops_in)
        super().__init__(None, self, context)
        self.steps = 0
        self.seen: list[TaskState] = []
        self.intake: Any = SimpleNamespace(take=self.take)
        self._fails_in = fails_in
        self._stops = context.stop

    # --- as its own state manager, and run ---

    @asynccontextmanager
    async def running_state(
        self, _: None, context: TaskContext, endings: Endings
    ) -> AsyncIterator[Any]:
        assert context is self._context
        endings.add(self.released)
        yield SimpleNamespace(
            live=SimpleNamespace(end=self._note),
            intake=self.intake,
            catch_up=self.catch_up,
            keep=self.keep,
            finish=self.finish,
        )

    def _note(self) -> None:
        self.seen.append(self.state)
        if self.state is self._fails_in:
            raise OSError(self.state.value)

    async def released(self) -> None:
        self.seen.append(self.state)

    async def catch_up(self) -> bool:
        self._note()
        return not self._stops()

    async def take(self) -> Signal | None:
        if self.steps == 3:
            return Signal.ENDED
        self._note()
        self.steps += 1
        return None

    async def keep(self) -> None:
        """Do nothing."""

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
    assert task.seen == [RESTORING, RUNNING, RUNNING, RUNNING, CLOSING, CLOSING, CLOSING]
    assert task.state is CLOSED


@pytest.mark.parametrize("steps", [0, 2])
def test_stop_ends_it_between_two_steps(steps: int) -> None:
    task = Recorded(stops_in=steps)
    at_once(task.run())
    ending = [CLOSING] * 3 if steps else [RESTORING]
    assert task.seen == [RESTORING, *[RUNNING] * steps, *ending]
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
