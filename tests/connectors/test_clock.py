"""Ticks of the clock: functions of their offsets, which a restarted run reads again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import ripple as rp
from ripple.connectors.clock import ClockInputs
from ripple.connectors.connector import Part
from ripple.connectors.identity import identity_of
from ripple.connectors.inputs import Signal
from ripple.connectors.locate import open_inputs
from ripple.core.errors import InputError, PlanError
from ripple.model.batch import Batch
from ripple.storage.log import Topic
from ripple.world.live import LiveClock
from ripple.world.live_disk import LiveDisk
from tests.patience import comes
from tests.records import Trade

NS = 1_000_000_000
SINCE = "2026-11-26T00:00Z"
SINCE_NS = 1_795_651_200 * NS


class Hands:
    """A clock that is set by hand."""

    def __init__(self, at_s: float) -> None:
        self.at_s = at_s

    def now_ns(self) -> int:
        return SINCE_NS + int(self.at_s * NS)

    monotonic_ns = now_ns

    async def sleep(self, seconds: float) -> None:
        self.at_s += seconds


async def ticks(
    inputs: ClockInputs, at: int = 0, stop: int | None = None, rows: int = 4
) -> tuple[list[int], list[int], Signal]:
    """Return the times of the ticks that are there, where their batches end, and what follows."""
    await inputs.open({"ticks": at}, rows, None if stop is None else {"ticks": stop})
    times, ends = [], []
    while not isinstance(found := inputs.next({"ticks": at}), Signal):
        name, entry = found
        assert name == "ticks"
        assert isinstance(entry, Batch)
        at = entry.next_offset
        times += [(one - SINCE_NS) // NS for one in entry.records["timestamp_ns"].to_pylist()]
        ends.append(at)
    return times, ends, found


def test_ticks_follow_from_their_offsets() -> None:
    time = Hands(10.5)
    inputs = ClockInputs("ticks", NS, SINCE_NS, time)

    async def act() -> None:
        assert await inputs.bounds() == ({"ticks": 0}, {"ticks": 11})
        assert await ticks(inputs) == ([*range(11)], [4, 8, 11], Signal.WAITING)
        time.at_s = 12
        assert await ticks(inputs, 11) == ([11, 12], [12, 13], Signal.WAITING)
        assert await ticks(inputs, 6, stop=9) == ([6, 7, 8], [8, 9], Signal.ENDED)
        time.at_s = 3  # it goes back: nothing that was read is taken away
        assert await ticks(inputs, 11) == ([], [], Signal.WAITING)
        assert (await inputs.bounds())[1] == {"ticks": 11}
        ending = ClockInputs("ticks", NS, SINCE_NS, time, follow=False)
        assert await ticks(ending, 2) == ([2, 3], [4], Signal.ENDED)
        early = ClockInputs("ticks", NS, SINCE_NS, Hands(-1))
        assert await ticks(early) == ([], [], Signal.WAITING)

    asyncio.run(act())


def test_other_ticks_than_those_that_were_read_are_refused() -> None:
    async def act() -> None:
        read = await ClockInputs("ticks", NS, SINCE_NS, Hands(5)).identities({"ticks": 3})
        back = ClockInputs("ticks", NS, SINCE_NS, Hands(0))  # set back since they were read
        await back.check({"ticks": 3}, read)
        assert await ticks(back, stop=3) == ([0, 1, 2], [3], Signal.ENDED)
        other = ClockInputs("ticks", 2 * NS, SINCE_NS, Hands(5))
        await other.check({"ticks": 0}, read)
        with pytest.raises(InputError, match="the run has read ticks every 1000000000 ns since"):
            await other.check({"ticks": 3}, read)

    asyncio.run(act())


RIGHT = {"name": "ticks", "every": "1s", "since": SINCE}


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"every": "0s"}, "every must be at least 1ms, as in every='1s', not '0s'"),
        ({"every": -1}, "every must be within 0 to 2"),
        ({"every": "often"}, "every must be a number and a unit"),
        ({"every": None}, "every must be a text such as"),
        ({"since": "today"}, "since must be a time with its zone"),
        ({"since": "2026-11-26"}, "since must be a time with its zone"),
        ({"since": None}, "since must be a time with its zone"),
        ({"since": True}, "since must be a time with its zone"),
        ({"since": -1}, "since must be a time from 1970"),
        ({"name": ""}, "name must be a text"),
        ({"follow": 1}, "follow must be True or"),
    ],
)
def test_a_wrong_clock_is_refused(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises((InputError, PlanError), match=f"clock: {why}"):
        rp.clock(**{**RIGHT, **wrong})


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        ("clock:", "cannot tell which ticks clock: has: it must be clock:EVERY,SINCE"),
        (f"clock:{SINCE}", "cannot tell which ticks clock:2026-11-26T00:00Z has"),
        (f"clock:0s,{SINCE}", "clock: every must be at least 1ms"),
        (f"clock:often,{SINCE}", "clock: every must be a number and a unit"),
        ("clock:1s,", "clock: since must be a time with its zone"),
        ("clock:1s,-1", "clock: since must be a time with its zone"),
        ("clock:1s," + "9" * 19, "clock: since must be a time from 1970"),
        ("clock:1s," + "9" * 5000, "clock: since must be a time with its zone"),
    ],
)
def test_a_wrong_uri_of_a_clock_is_refused(uri: str, why: str) -> None:
    market = rp.Pipeline("market")
    plan = market.source("ticks", rp.Tick).sink("out").plan()
    with pytest.raises((InputError, PlanError), match=why):
        open_inputs(uri, plan, 4, follow=True)


def test_a_uri_has_the_ticks_of_its_object_and_one_identity_in_all_spellings() -> None:
    market = rp.Pipeline("market")
    plan = market.source("ticks", rp.Tick).sink("out").plan()
    uris = (f"clock:1s,{SINCE}", f"clock:1000ms,{SINCE_NS}", "clock:1s,2026-11-26T01:00+01:00")

    async def act() -> None:
        named = await rp.clock(**RIGHT).identities({"ticks": 0})
        for uri in uris:
            assert await open_inputs(uri, plan, 4, follow=True).identities({"ticks": 0}) == named

    asyncio.run(act())
    assert {identity_of(uri, "continued_source") for uri in uris} == {f"clock:{NS},{SINCE_NS}"}


def test_a_clock_gives_ticks_alone_and_to_one_partition() -> None:
    market = rp.Pipeline("market")
    plan = market.source("trades", Trade).sink("out").plan()
    with pytest.raises(InputError, match=r"source 'trades': the records of clock:.* are rp\.Tick"):
        open_inputs(f"clock:1s,{SINCE}", plan, 4, follow=True)
    plan = market.source("ticks", rp.Tick).sink("out").plan()
    with pytest.raises(InputError, match=r"in 2 partitions: .* start one partition"):
        open_inputs(f"clock:1s,{SINCE}", plan, 4, follow=True, part=Part(0, 2))


def test_ticks_up_to_a_recorded_stop_have_come_although_this_clock_is_behind() -> None:
    """An owner's clock may be ahead of that of its successor, and of a standby's."""
    behind = ClockInputs("ticks", NS, SINCE_NS, Hands(1.5))
    assert asyncio.run(ticks(behind, 1, stop=6)) == ([1, 2, 3, 4, 5], [4, 6], Signal.ENDED)


def heartbeats() -> rp.Pipeline:
    """Count trades by their own times, in windows that the clock ends."""
    market = rp.Pipeline("market")
    trades = market.source("trades", rp.Tick, idle="50ms")
    beats = market.source("ticks", rp.Tick)
    both = rp.union(
        "both", trades.derive("trade", kind=rp.lit(1)), beats.derive("tick", kind=rp.lit(0))
    )
    return (
        both.partition("all-kinds", key="kind")
        .window("moment", rp.Tumbling("100ms"), lateness="0s")
        .fold("counts", n=rp.count())
        .sink("out")
    )


def test_windows_end_by_ticks_and_a_restart_reads_on(tmp_path: Path) -> None:
    """A silent log beside a clock: its windows end, and those after a restart are the next ones."""
    Topic.create(LiveDisk(tmp_path), "trades", rp.schema_of(rp.Tick), partitions=1)
    out, since_ns = tmp_path / "out.csv", LiveClock().now_ns()

    def rows() -> list[int]:
        lines = out.read_text().splitlines() if out.exists() else []
        return [int(line.split(",")[-1]) for line in lines[1:]]

    async def act(count: int) -> list[int]:
        async with rp.Task(
            heartbeats(),
            source={
                "trades": f"log:{tmp_path}/trades",
                "ticks": rp.clock("ticks", every="20ms", since=since_ns),
            },
            sink=out,
            checkpoint_dir=tmp_path / "state",
            commit_interval="10ms",
            follow=True,
        ) as task:
            running = asyncio.create_task(task.run())
            await comes(lambda: running.done() or len(rows()) >= count)
            task.stop()
            await running
        return rows()

    first = asyncio.run(act(2))
    second = asyncio.run(act(len(first) + 2))
    assert second[: len(first)] == first
    assert len(second) >= len(first) + 2
    # Whole windows of ticks, but for the first one, which begins with the clock.
    assert set(second[1:]) == {5}


def test_a_clock_that_goes_on_is_refused_in_a_run_that_ends(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'ticks': it goes on for ever, .* follow=False"):
        rp.run(
            heartbeats(),
            source={"trades": f"log:{tmp_path}/trades", "ticks": rp.clock(**RIGHT)},
            sink=tmp_path / "out.csv",
            checkpoint_dir=tmp_path / "state",
        )
    with pytest.raises(InputError, match=r"'ticks': it goes on for ever, .* checkpoint_dir="):
        rp.run(
            heartbeats(),
            source={"trades": [], "ticks": rp.clock(**RIGHT)},
            sink=tmp_path / "out.csv",
        )
    assert not (tmp_path / "state").exists()
