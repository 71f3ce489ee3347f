"""``rp.Task`` and ``rp.run(checkpoint_dir=...)``: a durable run in a program."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

import ripple as rp
from ripple.connectors import installed
from ripple.connectors.connector import Connector, Reading, Use
from ripple.connectors.restartable_input import RestartableInput
from ripple.core.events import Event, Restored
from ripple.world.errors import DiskLockedError
from tests.cli.processes import ROOT, ripple
from tests.patience import PATIENCE_S
from tests.spark.logs import topic_of


@rp.record(version=1)
class Trade:
    symbol: str
    size: int


PIPELINE = (
    rp.Pipeline("sizes")
    .source("trades", Trade)
    .partition("by", key="symbol")
    .fold("f", size=rp.sum("size"))
    .sink("out")
)
ROWS = [{"symbol": "AB"[at % 2], "size": at} for at in range(100)]


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Any]:
    """The arguments of a run over a log of ROWS."""
    return {
        "source": topic_of(tmp_path, PIPELINE.plan(), ROWS, partitions=1),
        "sink": tmp_path / "out.csv",
        "checkpoint_dir": tmp_path / "state",
        "batch_rows": 10,
    }


class Here(RestartableInput):
    """ROWS; ``threads`` are those that have asked for them."""

    threads: ClassVar[set[int]] = set()

    def __init__(self, path: str, reading: Reading) -> None:
        super().__init__(f"here:{path}", reading)

    def records(self, offset: int) -> Iterator[tuple[int, bytes]]:
        self.threads.add(threading.get_ident())
        for at, row in list(enumerate(ROWS))[offset:]:
            yield at, json.dumps(row).encode()


HERE = Connector(
    scheme="here",
    form="here:",
    continued_source=Use(f"{__name__}:{Here.__name__}", "resumes at the cut"),
)


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine within the patience of tests."""
    asyncio.run(asyncio.wait_for(work, PATIENCE_S))


def test_loop_goes_on_while_a_source_reads(
    given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed, "connector", {"here": HERE}.get)
    monkeypatch.setattr(Here, "threads", set())
    report = rp.run(PIPELINE, **given | {"source": "here:x"})
    assert report.consumed == len(ROWS)
    assert Here.threads
    assert threading.get_ident() not in Here.threads


def test_damaged_starting_point_is_named_with_a_way_out(
    given: dict[str, Any], tmp_path: Path
) -> None:
    rp.run(PIPELINE, **given)
    (origin,) = (tmp_path / "state").rglob("origin.json")
    # As a run leaves it that was killed before its first checkpoint.
    alone = tmp_path / "killed" / origin.relative_to(tmp_path / "state")
    alone.parent.mkdir(parents=True)
    alone.write_bytes(origin.read_bytes() + b"x")
    again = given | {"checkpoint_dir": tmp_path / "killed", "sink": tmp_path / "other.csv"}
    with pytest.raises(rp.RippleError, match=r"is damaged.*remove it, and the next run writes it"):
        rp.run(PIPELINE, **again)
    alone.unlink()
    assert rp.run(PIPELINE, **again).consumed == len(ROWS)


async def at_work(task: rp.Task) -> asyncio.Task[rp.Report]:
    """Begin to run a task; return once it has taken in what there is."""
    running = asyncio.create_task(task.run())
    while task.report.consumed < len(ROWS):
        assert not running.done()
        await asyncio.sleep(0.001)
    return running


class TestRun:
    def test_second_run_resumes_where_the_first_ended(self, given: dict[str, Any]) -> None:
        first = rp.run(PIPELINE, **given)
        held = given["sink"].read_bytes()
        assert (first.events, first.cut, first.stopped) == (100, {"trades": 100}, False)
        assert first.restored is not None
        assert first.restored.checkpoint is None
        second = rp.run(PIPELINE, **given)
        assert second.restored is not None
        assert second.restored.checkpoint == first.checkpoint
        assert (second.events, second.cut, second.digest) == (0, first.cut, first.digest)
        assert given["sink"].read_bytes() == held

    def test_outputs_are_those_of_a_one_shot_run(
        self, given: dict[str, Any], tmp_path: Path
    ) -> None:
        durable = rp.run(PIPELINE, **given)
        once = rp.run(PIPELINE, source=ROWS, sink=tmp_path / "once.csv", batch_rows=10)
        assert given["sink"].read_bytes() == (tmp_path / "once.csv").read_bytes()
        assert (durable.cut, durable.digest) == (once.cut, once.digest)

    @pytest.mark.parametrize("follow", [True, False])
    def test_interrupt_ends_it_in_good_order(self, given: dict[str, Any], follow: bool) -> None:
        seen: list[rp.Report] = []
        given["batch_rows"] = 1

        def interrupt(_: rp.Engine, report: rp.Report) -> None:
            seen.append(report)
            if report.consumed == 50:
                signal.raise_signal(signal.SIGINT)

        if follow:
            report = rp.run(PIPELINE, **given, follow=True, on_batch=interrupt)
        else:
            with pytest.raises(KeyboardInterrupt):
                rp.run(PIPELINE, **given, on_batch=interrupt)
            report = seen[-1]
        assert report.stopped
        assert report.checkpoint is not None
        assert 50 <= report.cut["trades"] < 100
        assert rp.run(PIPELINE, **given).cut == {"trades": 100}

    def test_interrupted_program_goes_on_behind_the_run(self, given: dict[str, Any]) -> None:
        ripple_of = (
            "import sys, ripple as rp; from tests.task.test_task import PIPELINE\n"
            "def say(*_): print('at work', flush=True)\n"
            "report = rp.run(PIPELINE, source=sys.argv[1], sink=sys.argv[2], "
            "checkpoint_dir=sys.argv[3], follow=True, on_batch=say)\n"
            "print(report.stopped, report.cut)"
        )
        places = [str(given[name]) for name in ("source", "sink", "checkpoint_dir")]
        command = [sys.executable, "-c", ripple_of, *places]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "at work\n"
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate(timeout=PATIENCE_S)
            assert said.splitlines()[-1] == "True {'trades': 100}"
            assert process.returncode == 0

    def test_weaker_promise_of_a_sink_is_logged_as_a_warning(
        self,
        given: dict[str, Any],
        caplog: pytest.LogCaptureFixture,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        rp.run(PIPELINE, **given | {"sink": "-"})
        assert len(capfd.readouterr().out.splitlines()) == 20
        (record,) = [one for one in caplog.records if one.levelno == logging.WARNING]
        assert "since the last checkpoint may be repeated" in record.getMessage()

    def test_needs_an_event_loop_of_its_own(self, given: dict[str, Any]) -> None:
        async def inside() -> None:
            with pytest.raises(RuntimeError, match=r"await rp.arun.*'async with rp.Task"):
                rp.run(PIPELINE, **given)

        run(inside())
        assert not given["checkpoint_dir"].exists()


class TestTask:
    def test_stop_ends_it_in_good_order(self, given: dict[str, Any]) -> None:
        async def service() -> None:
            async with rp.Task(PIPELINE, **given, follow=True) as task:
                running = await at_work(task)
                task.stop()
                report = await running
            assert report is task.report
            assert (report.stopped, report.cut) == (True, {"trades": 100})
            assert report.checkpoint is not None

        run(service())
        assert rp.run(PIPELINE, **given).events == 0

    def test_stop_may_come_from_a_thread_and_before_it_runs(self, given: dict[str, Any]) -> None:
        async def service() -> None:
            async with rp.Task(PIPELINE, **given, follow=True) as task:
                running = await at_work(task)
                await asyncio.to_thread(task.stop)
                assert (await running).stopped
            async with rp.Task(PIPELINE, **given, follow=True) as task:
                task.stop()
                assert (await task.run()).stopped
            task.stop()

        run(service())

    def test_cancellation_ends_it_in_good_order(self, given: dict[str, Any]) -> None:
        async def service() -> None:
            async with rp.Task(PIPELINE, **given, follow=True) as task:
                running = await at_work(task)
                running.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await running
            assert task.report.stopped
            assert task.report.cut == {"trades": 100}

        run(service())
        assert rp.run(PIPELINE, **given).events == 0

    def test_second_cancellation_ends_it_at_once(self, given: dict[str, Any]) -> None:
        async def service() -> None:
            async with rp.Task(PIPELINE, **given, follow=True) as task:
                running = await at_work(task)
                running.cancel()
                await asyncio.sleep(0)
                running.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await running
            assert not task.report.stopped

        run(service())
        assert rp.run(PIPELINE, **given).cut == {"trades": 100}

    def test_runs_once(self, given: dict[str, Any]) -> None:
        async def service() -> None:
            task = rp.Task(PIPELINE, **given)
            with pytest.raises(RuntimeError, match="inside of 'async with'"):
                await task.run()
            async with task:
                await task.run()
                with pytest.raises(RuntimeError, match="called once"):
                    await task.run()
            with pytest.raises(RuntimeError, match="make another one, which resumes"):
                await task.__aenter__()

        run(service())

    def test_second_task_is_refused_by_name(self, given: dict[str, Any]) -> None:
        async def service() -> None:
            async with rp.Task(PIPELINE, **given, follow=True, holder="the billing service") as one:
                running = await at_work(one)
                with pytest.raises(DiskLockedError) as refused:
                    async with rp.Task(PIPELINE, **given) as other:
                        await other.run()
                lock = f"{given['checkpoint_dir']}/{PIPELINE.plan().name}/00000/life.lock"
                said = f"{lock}: is held by the billing service: stop that one first"
                assert str(refused.value) == said
                one.stop()
                await running

        run(service())

    def test_events_are_given_or_logged(
        self, given: dict[str, Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        events: list[Event] = []

        async def service() -> None:
            async with rp.Task(PIPELINE, **given, on_event=events.append) as task:
                await task.run()
            async with rp.Task(PIPELINE, **given) as task:
                await task.run()

        with caplog.at_level(logging.INFO, "ripple.task"):
            run(service())
        assert any(isinstance(event, Restored) for event in events)
        (record,) = caplog.records
        assert record.levelno == logging.INFO
        assert "pipeline 'sizes': restored checkpoint 0000000001-" in record.getMessage()


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"source": iter(ROWS)}, rp.InputError, "type list_iterator: push its rows into an rp.Str"),
        ({"source": "a.csv"}, rp.InputError, r"again, not 'a.csv' \(as files:a.csv it can"),
        ({"sink": 7}, rp.OutputError, "cannot write an object of type int so that a restart"),
        ({"sink": "a.txt"}, rp.OutputError, "cannot write 'a.txt' so that a restart"),
        ({"sink": {"of": "a.csv"}}, rp.OutputError, "no output 'of'"),
        ({"checkpoint_dir": ""}, rp.InputError, "checkpoint_dir must be a folder or s3://BUCKET"),
        ({"checkpoint_dir": "gs://b/p"}, rp.InputError, "checkpoint_dir must be .* not 'gs://b/p'"),
        ({"checkpoint_dir": 7}, rp.InputError, "checkpoint_dir must be .* not 7"),
        ({"checkpoint_dir": __file__}, rp.RippleError, "cannot be a store, for a file stands"),
        ({"follow": "yes"}, rp.PlanError, "follow must be True or False, not 'yes'"),
        ({"batch_rows": 0}, rp.InputError, "batch_rows must be a whole number of at least 1"),
        ({"commit_interval": "soon"}, rp.PlanError, "commit_interval must be .* not 'soon'"),
        ({"commit_interval": 1}, rp.PlanError, "commit_interval=1 is 1 ns: .* as '1s'"),
        ({"checkpoint_interval": 1.5}, rp.PlanError, "checkpoint_interval must be a text"),
        ({"keep": 0}, rp.PlanError, "keep must be a whole number from 1 on, not 0"),
        ({"rebuild": "f"}, rp.PlanError, "rebuild must be a list of names of folds, not 'f'"),
        ({"rebuild": ["g"]}, rp.PlanError, "no fold 'g' to rebuild: the folds are f"),
        ({"on_error": "skip"}, rp.PlanError, "on_error must be 'wait' or 'stop', not 'skip'"),
        ({"on_batch": 3}, rp.PlanError, "on_batch must be a function, not 3"),
        ({"strict": True}, rp.InputError, "max_rejected and dead_letters do not go with check"),
        ({"checkpoint_dir": None, "keep": 9}, rp.InputError, "keep needs checkpoint_dir"),
        ({"checkpoint_dir": None, "follow": True}, rp.InputError, "follow needs checkpoint_dir"),
        ({"source": "log:none"}, rp.InputError, "log:none: .*there is no topic"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(
    given: dict[str, Any], wrong: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as refused:
        rp.run(PIPELINE, **given | wrong)
    assert "\n" not in str(refused.value)
    assert not given["checkpoint_dir"].exists()
    assert not given["sink"].exists()


def test_output_to_the_source_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(rp.OutputError, match="it is the run's own source"):
        rp.run(PIPELINE, **given | {"sink": given["source"]})


def test_state_is_that_of_the_command(given: dict[str, Any], tmp_path: Path) -> None:
    rp.run(PIPELINE, **given)
    file = tmp_path / "code.py"
    file.write_text("from tests.task.test_task import PIPELINE as pipeline\n")
    told = ripple(
        *("run", file, "--source", given["source"], "--sink", given["sink"]),
        *("--checkpoint-dir", given["checkpoint_dir"]),
    )
    assert told.code == 0
    assert "restored checkpoint 0000000001-" in told.err
