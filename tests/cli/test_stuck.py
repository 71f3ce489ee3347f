"""A cluster that works until the end is told apart from one that will never get there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ripple.cli.cluster import up as cluster_up
from ripple.cli.cluster.starting import stuck as stuck_module
from ripple.cli.cluster.starting.stuck import STUCK_S, Stuck, failing, of_problems
from ripple.cli.main import main
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


def test_until_end_is_refused_where_rows_wait_for_answers(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pipeline = Path(__file__).parents[1] / "services" / "pipeline_asks.py"
    sinks = [f"graded=log:{tmp_path}/out", f"graded-sums=log:{tmp_path}/sums"]
    given = ["--source", f"log:{tmp_path}/trades", *(f"--sink={one}" for one in sinks)]
    asked = ["cluster", "up", f"{pipeline}", *given, "--dir", f"{tmp_path}/dir", "--until-end"]
    assert main(asked) == 1
    said = capfd.readouterr().err
    assert "--until-end waits for records, and rows wait for the answers of 'grade' longer" in said
    assert not (tmp_path / "dir").exists()
