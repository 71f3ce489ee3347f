"""Runs and clusters whose checkpoints are in S3: killed, cut off from it, and on a bad clone."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ripple.model.pipeline.file import load_plan
from ripple.spark.streaming.resident import here
from tests.cli.processes import RIPPLE, ROOT
from tests.cluster.chaos import append as append_trades
from tests.cluster.chaos import job_of
from tests.cluster.cluster import cluster, ripple
from tests.patience import PATIENCE_S
from tests.services.missing import MissingError, skip
from tests.services.proxy import Proxy
from tests.services.s3 import Moto, ObjectServer
from tests.spark.logs import topic_of
from tests.spark.streams import SOURCE, events, stream_of, turns
from tests.task import kill_nine

pytestmark = pytest.mark.services

PIPELINE = kill_nine.PIPELINE
TRADES = 20_000
KILLED_TRADES = 100_000
URL = "s3://bucket/prefix"


def test_a_run_that_is_killed_again_and_again_writes_what_it_would_have(
    tmp_path: Path, s3_server: ObjectServer
) -> None:
    topic = tmp_path / "trades"
    kill_nine.append(topic, KILLED_TRADES)
    expected = kill_nine.undisturbed(kill_nine.Place(tmp_path / "undisturbed", topic))
    place = kill_nine.Place(tmp_path / "killed", topic, URL)
    found = kill_nine.killed(place, KILLED_TRADES, kills=6, seed=1)
    assert found.outputs == expected
    assert found.kills >= 3, found
    assert found.restored, found
    verified = ripple("checkpoint", "verify", "--dir", URL)
    assert re.search(r"/0: \d+ checkpoints, all whole", verified), verified


class Run:
    """``ripple run --follow`` with its checkpoints in S3, unless something else is said."""

    def __init__(self, folder: Path, *more: str | Path, sinks: tuple[str, ...] = ()) -> None:
        self.topic, self.out, self.log = folder / "trades", folder / "out.csv", folder / "said"
        ripple("log", "create", "--schema", "trade", self.topic)
        sinks = sinks or (f"out={self.out}", f"total=log:{folder / 'total'}")
        command = [
            *(*RIPPLE, "run", str(PIPELINE), "--source", f"log:{self.topic}", "--follow"),
            *(f"--sink={sink}" for sink in sinks),
            *("--batch", "500", "--checkpoint-dir", URL, *map(str, more)),
        ]
        with self.log.open("w") as said:
            self.process = subprocess.Popen(command, cwd=ROOT, stderr=said)

    def append(self) -> None:
        """Append more trades."""
        ripple("log", "append", self.topic, f"synthetic:{TRADES}")

    @property
    def said(self) -> str:
        return self.log.read_text()

    def until(self, is_so: Callable[[], bool]) -> None:
        ends = time.monotonic() + PATIENCE_S
        while not is_so():
            assert self.process.poll() is None, self.said
            assert time.monotonic() < ends, self.said
            time.sleep(0.05)

    def says(self, pattern: str, times: int = 1) -> None:
        self.until(lambda: len(re.findall(pattern, self.said)) >= times)

    @property
    def committed(self) -> int:
        cut = Path(f"{self.out}.cut")
        found = re.search(r'"trades": (\d+)', cut.read_text()) if cut.exists() else None
        return int(found[1]) if found else 0

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(PATIENCE_S) == 0, self.said


QUICK = ("--checkpoint-interval", "200ms", "--commit-interval", "50ms")


def test_an_outage_of_the_store_costs_checkpoints_and_no_commit(
    tmp_path: Path, s3_server: ObjectServer
) -> None:
    run = Run(tmp_path, *QUICK)
    run.append()
    run.until(lambda: run.committed == TRADES)
    s3_server.kill()
    run.append()
    run.until(lambda: run.committed == 2 * TRADES)
    run.says("a checkpoint was not stored .* no answer")
    assert "commit waits" not in run.said
    run.append()
    run.until(lambda: run.committed == 3 * TRADES)
    s3_server.start()
    time.sleep(1)
    run.append()
    shown = ("checkpoint", "show", "--dir", URL)
    run.until(lambda: f"next offset {4 * TRADES}," in ripple(*shown))
    run.end()


def test_a_commit_waits_for_its_dead_letters_while_the_store_is_away(
    tmp_path: Path, s3_server: ObjectServer
) -> None:
    run = Run(tmp_path, "--checkpoint-interval", "1h", "--commit-interval", "50ms")
    run.append()
    run.until(lambda: run.committed == TRADES)
    s3_server.kill()
    bad = tmp_path / "bad.jsonl"  # of a clock that is ahead
    trade = '{"symbol": "A", "price": 1.0, "size": 1, "timestamp_ns": %d, "venue": "X"}\n'
    bad.write_text(trade % (1 << 62))
    ripple("log", "append", run.topic, bad)
    run.append()
    run.says("the next commit waits for the store", times=3)
    assert run.committed < 2 * TRADES
    s3_server.start()
    run.until(lambda: run.committed == 2 * TRADES + 1)
    run.end()
    letters = ripple("dead-letter", "list", "--checkpoint-dir", URL)
    assert f"offset {TRADES}" in letters
    assert "1 letter\n" in letters
    retry = ("dead-letter", "retry", "--checkpoint-dir", URL, "--source", f"log:{run.topic}")
    assert "1 retried" in ripple(*retry)
    assert "0 retried\n         1  were retried before" in ripple(*retry)
    assert f"offsets 0 to {2 * TRADES + 2}," in ripple("log", "info", run.topic)


def test_a_store_that_lets_a_second_put_win_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        server = Moto(tmp_path / "s3")  # which looks at no signature, so that a header may change
    except MissingError as error:
        skip(error)
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    kill_nine.append(tmp_path / "trades", 10)

    async def main() -> None:
        async with Proxy(f"127.0.0.1:{server.port}") as proxy:
            proxy.rewrites = b"If-None-Match", b"X-Not-Believe"
            given = ["run", PIPELINE, "--source", f"log:{tmp_path / 'trades'}"]
            sinks = ["--sink", f"out={tmp_path / 'out.csv'}", "--checkpoint-dir", URL]
            process = await asyncio.create_subprocess_exec(
                *map(str, [*RIPPLE, *given, *sinks]),
                cwd=ROOT,
                env={**os.environ, "RIPPLE_S3_ENDPOINT": f"http://{proxy.address}"},
                stderr=asyncio.subprocess.PIPE,
            )
            _, said = await process.communicate()
            assert process.returncode == 1
            assert f"{URL}/ at http://{proxy.address} lets a second put replace" in said.decode()

    with server:
        server.make_bucket("bucket")
        asyncio.run(asyncio.wait_for(main(), PATIENCE_S))
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("name", ["totals", "venues"])
def test_cluster_continues_after_any_process_is_killed(
    tmp_path: Path, s3_server: ObjectServer, name: str
) -> None:
    partitions = 4
    job = job_of(name, tmp_path, partitions)
    append_trades(job.source, partitions, step=0, batches=3)

    async def main() -> None:
        up_now = cluster(job, tmp_path / "state", workers=2, store=URL)
        async with up_now as up:
            await up.caught_up(PATIENCE_S)
            for step in range(1, 5):
                await asyncio.to_thread(append_trades, job.source, partitions, step, 2)
                os.kill(up.pid(f"worker-{1 + step % 2}"), signal.SIGKILL)
                if step == 3:
                    s3_server.kill()
                    await asyncio.sleep(3)
                    await asyncio.to_thread(s3_server.start)
                await up.caught_up(PATIENCE_S)
            await asyncio.to_thread(append_trades, job.source, partitions, 5, 1, is_end=True)
            await up.caught_up(PATIENCE_S)

    asyncio.run(main())
    expected = job.alone(tmp_path), job.tables_alone(tmp_path)
    assert (job.made(), job.tables_made()) == expected
    assert not (tmp_path / "state" / "store").exists()
    assert list((tmp_path / "state" / "cache" / "worker-1").iterdir())


def test_worker_without_a_folder_for_lanes_reports_it(
    tmp_path: Path, s3_server: ObjectServer
) -> None:
    job = job_of("events", tmp_path, 4)
    given = ["--store", URL, "--source", f"log:{job.source}", "--sink", job.sinks(job.folder)[0]]
    command = [sys.executable, "-m", "worker", str(job.pipeline), "--coordinator", "localhost:1"]
    ended = subprocess.run(
        [*command, *given],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert ended.returncode == 1
    assert "give --lanes, a folder that all workers have" in ended.stderr


def test_micro_batches_of_spark_go_on_from_checkpoints_in_s3(
    tmp_path: Path, s3_server: ObjectServer
) -> None:
    path = tmp_path / "streamed.py"
    path.write_text(SOURCE)
    pipeline = f"{path}:tumbling"
    topic_of(tmp_path, load_plan(pipeline), events(900), partitions=1, key=["symbol"])
    stream = stream_of(pipeline, str(tmp_path), 1, store=URL)
    first, second = turns(stream, 2)
    found = first.run()
    assert (found["events"], found["not_stored"]) == (450, "")
    here().drop(first)
    found = second.run()
    here().drop(second)
    assert (found["events"], "the beginning" in found["restored"]) == (450, False)
    assert re.search(
        r"/0: \d+ checkpoints, all whole", ripple("checkpoint", "verify", "--dir", URL)
    )
