"""The clock's ticks beside a log, on a cluster of real processes with killed owners."""

from __future__ import annotations

import os
import re
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

import ripple as rp
from ripple.connectors.clock import ClockInputs
from ripple.connectors.files.text.cut_record import Owner
from ripple.connectors.log.sink import committed_in
from ripple.model.pipeline.file import load_plan
from ripple.storage.log import Topic
from ripple.world import LiveDisk
from tests.cli.processes import ripple
from tests.cluster.cluster import Job, table
from tests.cluster.up import Up
from tests.patience import until

PIPELINE = Path(__file__).with_name("pipeline_ticks.py")
OUTPUTS = ("counts-out", "beats-out")
EVERY_NS, TICKS_EACH = 20_000_000, 5  # a window of the pipeline has so many
SINCE = "2026-11-26T00:00Z"


def job_of(folder: Path, ticks: str) -> Job:
    """Make the log of trades, which one partition of the pipeline reads beside ``ticks``."""
    created = ripple(
        "log", "create", folder / "trades", "--schema", f"{PIPELINE}:trades", "--partitions", 2
    )
    assert created.code == 0, created.err
    named = (f"trades=log:{folder / 'trades'}", f"ticks={ticks}")
    return Job(PIPELINE, folder / "trades", folder / "made", OUTPUTS, 1, named=named)


def append(folder: Path) -> None:
    """Append trades of now."""
    lines = "".join(f"{time.time_ns()}\n" for _ in range(100))
    assert ripple("log", "append", folder / "trades", "-", given=lines).code == 0


class Stopped:
    """The clock at one time."""

    def __init__(self, at_ns: int) -> None:
        self._at_ns = at_ns

    def now_ns(self) -> int:
        return self._at_ns

    monotonic_ns = now_ns

    async def sleep(self, seconds: float) -> None:
        raise AssertionError(f"nothing sleeps {seconds} s")


@pytest.mark.services
def test_another_owner_goes_on_with_the_next_tick_and_one_process_makes_the_same(
    tmp_path: Path,
) -> None:
    job = killed_owners(tmp_path)
    since = job.named[1].partition(",")[2]
    other = Up(replace(job, named=(job.named[0], f"ticks=clock:{2 * EVERY_NS}ns,{since}")))
    try:
        assert other.ended() == 1
        assert "ripple: clock 'ticks': the run has read ticks every" in other.said
        assert "coordinators: " not in other.said, "nothing has started"
    finally:
        other.process.kill()


def killed_owners(tmp_path: Path, *more: object) -> Job:
    """Kill the owner of the ticks twice, and hold the outputs to those of one process.

    more: flags of the cluster.
    """
    since_ns = time.time_ns() // 100_000_000 * 100_000_000
    job = job_of(tmp_path, f"clock:{EVERY_NS}ns,{since_ns}")
    up = Up(job, *more)

    def beats() -> list[str]:
        assert up.process.poll() is None, up.said
        topic = job.folder / "beats-out"
        return table(topic).rows if (topic / "topic").exists() else []

    def more(before: int) -> None:
        until(lambda: len(beats()) > before + 5, lambda: up.said)

    try:
        append(tmp_path)
        more(0)
        for _ in range(2):
            owner = up.says(r"(?s).*(worker-\d) [^\n]*partition 0: (?:begins|restored|replayed)")[1]
            number = up.says(rf"(?s).*{owner} +\| process (\d+)")[1]
            before, said = len(beats()), len(up.said)
            os.kill(int(number), signal.SIGKILL)
            append(tmp_path)
            until(
                # A standby that had no checkpoint to restore begins.
                lambda said=said: re.search("partition 0: (?:begins|re)", up.said[said:]),
                lambda: up.said,
            )
            more(before)
        up.process.send_signal(signal.SIGTERM)
        assert up.ended() == 0, up.said
    finally:
        up.process.kill()
    disk = LiveDisk(str(job.folder))
    cuts = [committed_in(Topic.open(disk, name), 0, Owner("market", name)) for name in OUTPUTS]
    assert cuts[0] is not None
    assert cuts[1] is not None
    assert cuts[0].cut == cuts[1].cut
    ticks = cuts[0].cut["ticks"]
    made = job.tables_made()
    # Every window of the clock is there once, with all its ticks.
    rows = made[1].rows
    assert len(rows) >= 15
    assert all(row.endswith(f'"n":{TICKS_EACH}}}') for row in rows), rows
    assert len(rows) in (ticks // TICKS_EACH, (ticks - 1) // TICKS_EACH)
    alone = tmp_path / "alone"
    report = rp.run(
        load_plan(str(PIPELINE)),
        source={
            "trades": f"log:{tmp_path / 'trades'}",
            "ticks": ClockInputs(
                "ticks",
                EVERY_NS,
                since_ns,
                Stopped(since_ns + (ticks - 1) * EVERY_NS),
                follow=False,
            ),
        },
        sink={name: f"log:{alone / name}" for name in OUTPUTS},
        checkpoint_dir=str(tmp_path / "state-alone"),
    )
    assert report.cut == cuts[0].cut
    assert [table(alone / name) for name in OUTPUTS] == made
    return job


@pytest.mark.parametrize(
    ("ticks", "more", "why"),
    [
        ("clock:1s", (), "it must be clock:EVERY,SINCE, as in clock:1s,2026-11-26T00:00Z"),
        (f"clock:often,{SINCE}", (), "clock: every must be a number and a unit"),
        ("clock:1s,today", (), "clock: since must be a time with its zone"),
        (
            f"clock:1s,{SINCE}",
            ("--partitions", 2),
            "has 1 partition, as it always has, which 2 does not divide: start a new cluster with "
            "--partitions 1",
        ),
        (f"clock:1s,{SINCE}", ("--until-end",), "source 'ticks': the clock has no end"),
        (
            f"through:PASSED,clock:1s,{SINCE}",
            ("--until-end",),
            "source 'ticks': the clock has no end",
        ),
    ],
)
def test_a_clock_that_does_not_fit_is_refused_before_anything_starts(
    ticks: str, more: tuple[object, ...], why: str, tmp_path: Path
) -> None:
    passed = tmp_path / "passed.toml"
    passed.write_text('[[transform]]\ntimestamp = "at"\nfrom = "ns"\n')
    job = job_of(tmp_path, ticks.replace("PASSED", str(passed)))
    sinks = [flag for sink in job.sinks(job.folder) for flag in ("--sink", sink)]
    refused = ripple(
        "cluster", "up", PIPELINE, *job.sources, *sinks, "--dir", tmp_path / "state", *more
    )
    assert refused.code == 1
    assert why in refused.only_line
    assert not (tmp_path / "state").exists()
