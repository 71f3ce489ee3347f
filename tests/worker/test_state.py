"""The seven states: exactly the transitions of the table."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import product

import pytest

from ripple.control.assignment import Share
from ripple.world import LiveClock
from tests.patience import PATIENCE_S
from tests.worker.processes import given
from worker.supervisor.state import STOP_PATHS, TRANSITIONS, Lifecycle, State, WorkerError
from worker.supervisor.supervisor import Supervisor

# As the book has it, line by line.
LEGAL = {
    ("Starting", "Active"),
    ("Starting", "Failed"),
    ("Starting", "Recovering"),
    ("Active", "Draining"),
    ("Active", "Failed"),
    ("Active", "Stopping"),
    ("Draining", "Active"),
    ("Draining", "Failed"),
    ("Draining", "Stopping"),
    ("Stopping", "Stopped"),
    ("Stopping", "Failed"),
    ("Failed", "Recovering"),
    ("Recovering", "Active"),
    ("Recovering", "Failed"),
}
WAYS = {
    "Starting": [],
    "Active": ["Active"],
    "Draining": ["Active", "Draining"],
    "Stopping": ["Active", "Stopping"],
    "Stopped": ["Active", "Stopping", "Stopped"],
    "Failed": ["Failed"],
    "Recovering": ["Recovering"],
}


def worker_in(state: str) -> Lifecycle:
    worker = Lifecycle("w1")
    for name in WAYS[state]:
        worker.go(State(name))
    return worker


@pytest.mark.parametrize(("before", "after"), list(product(WAYS, WAYS)))
def test_transition_is_legal_exactly_if_the_book_has_it(before: str, after: str) -> None:
    worker = worker_in(before)
    assert worker.state.value == before
    if (before, after) in LEGAL:
        worker.go(State(after))
        assert worker.state.value == after
    else:
        text = rf"^Invalid state transition \(worker_id w1\) \(from {before}\) \(to_ {after}\)"
        with pytest.raises(WorkerError, match=text):
            worker.go(State(after))
        assert worker.state.value == before


def test_error_says_where_it_may_go() -> None:
    with pytest.raises(WorkerError, match="from Stopped it goes to nowhere"):
        worker_in("Stopped").go(State.ACTIVE)
    with pytest.raises(WorkerError, match="from Stopping it goes to Failed, Stopped"):
        worker_in("Stopping").go(State.ACTIVE)


@pytest.mark.parametrize("state", WAYS)
def test_only_an_active_worker_is_ready_and_every_one_is_healthy(state: str) -> None:
    worker = worker_in(state)
    assert worker.is_ready == (state == "Active")
    assert worker.ready_answer == ((200, "READY") if state == "Active" else (503, "NOT READY"))
    assert worker.health_answer == (200, "OK")


@pytest.mark.parametrize("state", WAYS)
def test_every_state_has_a_legal_path_to_stopped(state: str) -> None:
    worker = worker_in(state)
    for step in STOP_PATHS[worker.state]:
        worker.go(step)
    assert worker.state in (State.STOPPED, State.FAILED)


def test_tables_have_every_state() -> None:
    assert TRANSITIONS.keys() == STOP_PATHS.keys() == set(State)
    assert len(State) == 7


class _Taker:
    """A cluster in which another worker takes what this one is to give away."""

    def __init__(self, worker: Supervisor, *, is_alone: bool) -> None:
        self.worker, self.states = worker, list[State]()
        self.is_alone = is_alone

    def say(self, version: int, owner: str) -> None:
        now = given(version, Share(f"{owner}/0", version))
        members = tuple(one for one in now.members if not self.is_alone or one.id == "a")
        self.worker.heard(replace(now, members=members), 1)

    async def drain(self, _reason: str) -> None:
        self.states.append(self.worker.lifecycle.state)
        self.say(2, "a")  # a version that tells of something else does not bring it back
        self.states.append(self.worker.lifecycle.state)
        self.say(3, "b")

    async def abandoned(self) -> None:
        await asyncio.Event().wait()

    async def leave(self) -> None:
        self.states.append(self.worker.lifecycle.state)


@pytest.mark.parametrize(
    ("is_alone", "states"),
    [
        (False, [State.DRAINING, State.DRAINING, State.STOPPING, State.STOPPED]),
        (True, [State.STOPPING, State.STOPPED]),
    ],
)
async def test_stopping_worker_drains_while_its_partitions_move(
    is_alone: bool, states: list[State]
) -> None:
    worker = Supervisor("a", 0, None, LiveClock(), hung_after_s=1, say=lambda _: None)  # type: ignore[arg-type]  # it starts none
    taker = _Taker(worker, is_alone=is_alone)
    worker.membership = taker  # type: ignore[assignment]  # a double
    taker.say(1, "a")
    worker.lifecycle.go(State.ACTIVE)
    worker._running = [asyncio.ensure_future(asyncio.sleep(0))]
    worker._member = asyncio.ensure_future(asyncio.Event().wait())
    assert await worker.stop(move_away_s=PATIENCE_S, stop_s=PATIENCE_S, reason="x")
    assert [*taker.states, worker.lifecycle.state] == states
