"""A cluster that works until the end is told apart from one that will never get there."""

from __future__ import annotations

import json

import pytest

from ripple.cli.cluster import up as cluster_up
from ripple.cli.cluster.starting import answered
from ripple.cli.cluster.starting import stuck as stuck_module
from ripple.cli.cluster.starting.at_work import AtWork
from ripple.cli.cluster.starting.reach import Reached
from ripple.cli.cluster.starting.stuck import STUCK_S, Stuck, failing, of_problems
from ripple.control.probes import Page, serve_pages
from ripple.control.rpc.membership_messages import FAILED
from ripple.world.live_network import LiveNetwork

LOST = "InputError: trades/1 ends at offset 285, but records up to 1143 were read from it"


def problem(partition: int, why: str) -> str:
    return f"partition {partition} has failed at w/0, {FAILED}{why}"


def test_failure_repeated_for_long_is_permanent() -> None:
    stuck, now = Stuck(), {"partition 0": "lost", "partition 1": "other"}
    assert stuck.seen(now, 0) is None
    assert stuck.seen(now, STUCK_S - 1) is None
    said = stuck.seen(now, STUCK_S)
    assert said == "partition 0 fails repeatedly: lost; 1 more fail as well"


def test_recovery_or_another_failure_restarts_the_wait() -> None:
    stuck = Stuck()
    for at, now in enumerate([{"p": "a"}, {}, {"p": "a"}, {"p": "b"}, {"p": "a"}]):
        assert stuck.seen(now, at * (STUCK_S - 1)) is None
    assert stuck.seen({"p": "a"}, 6 * STUCK_S) == "p fails repeatedly: a"


@pytest.mark.parametrize("kind", ["InputAwayError", "PermissionError", "FencedError", "StoreError"])
def test_transient_failure_is_waited_for(kind: str) -> None:
    assert of_problems([problem(3, f"{kind}: it is away"), "w1 is silent: for 9 s"]) == {}
    assert of_problems([problem(3, LOST)]) == {"partition 3": LOST.partition(": ")[2]}


async def test_coordinators_say_what_fails_and_who_does_not_fit() -> None:
    alert = {"worker": "w1", "name": "SchemaMismatch", "cause": "its plan hash is a, not b"}
    pages = {
        "/health": lambda: Page(json.dumps({"problems": [problem(0, LOST)]})),
        "/alerts": lambda: Page(json.dumps([alert, alert | {"name": "WorkerSilent"}])),
    }

    serving = await serve_pages(LiveNetwork(), "127.0.0.1:0", pages)
    found = await failing(["127.0.0.1:1", serving.address])
    serving.close()
    assert found == {"partition 0": LOST.partition(": ")[2], "w1": "its plan hash is a, not b"}


async def test_until_end_fails_on_a_failure_that_does_not_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stuck_module, "STUCK_S", 0.0)
    monkeypatch.setattr(cluster_up, "LOOK_INTERVAL_MAX_S", 0.0)

    async def now() -> dict[str, str]:
        return {"partition 0": "lost"}

    status = cluster_up._Status(None, None, now)  # type: ignore[arg-type]  # asked before others
    with pytest.raises(cluster_up.UnreachableEndError, match="partition 0 fails repeatedly"):
        await status.watch()


async def test_until_end_goes_on_while_committed_rows_wait_for_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A former owner, which tells less, does not undo what is known of a partition."""
    offsets, answers_of = (
        f"ripple_partition_{name}" for name in ("answered_offsets", "committed_answers")
    )
    waiting = "ripple_ask_waiting_rows"
    told: list[list[list[object]]] = [
        [[offsets, ["w", "0"], 6], [answers_of, ["w", "0"], 5], [waiting, ["w", "rate"], 3]],
        [
            *([offsets, ["w", "1"], 4], [answers_of, ["w", "1"], 2]),
            *([offsets, ["v", "0"], 5], [answers_of, ["v", "0"], 4]),
        ],
        [],
    ]

    async def page(_: str, path: str) -> str:
        assert path == "/numbers"
        return json.dumps({"numbers": told.pop(0), "histograms": []})

    async def working() -> AtWork:
        return AtWork(1, 1)

    async def failing_now() -> dict[str, str]:
        return {}

    def reached() -> Reached:
        counted = 4 if told else 5  # a later stage has answers last
        return Reached(10, 10, {"0": counted, "1": 2})

    monkeypatch.setattr(answered, "page_at", page)
    monkeypatch.setattr(cluster_up, "LOOK_INTERVAL_MAX_S", 0.0)
    answers = answered.Answers(["a"])
    status = cluster_up._Status(reached, working, failing_now, answers)
    shown: list[str] = []
    monkeypatch.setattr(status, "_show", lambda: shown.append(status.newest))
    await status.watch()
    whole = "10 of 10 records are in the outputs (100 %)"
    assert (shown, status.newest) == ([f"{whole}; 3 rows wait for answers", whole], whole)
