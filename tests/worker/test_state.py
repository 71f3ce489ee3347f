"""The seven states: what the table has, and nothing else."""

from __future__ import annotations

from itertools import product

import pytest

from worker.state import STOP_PATHS, TRANSITIONS, Lifecycle, State, WorkerError

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
def test_whoever_is_told_to_stop_has_a_legal_way(state: str) -> None:
    worker = worker_in(state)
    for step in STOP_PATHS[worker.state]:
        worker.go(step)
    assert worker.state in (State.STOPPED, State.FAILED)


def test_tables_have_every_state() -> None:
    assert TRANSITIONS.keys() == STOP_PATHS.keys() == set(State)
    assert len(State) == 7
