"""State of one process and of a cluster's stages are not gone on with by the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ripple.cli.main import main
from ripple.core.errors import PlanError
from ripple.engine.migration.adaptation import ChangedPlanError, of_other_home
from ripple.model.pipeline.file import load_plan
from ripple.storage.store import MemoryStore
from ripple.storage.store.opening import store_to_read
from ripple.task import task as durable
from ripple.task.home import check_code, check_home, other_division
from ripple.world import StoreError
from tests.spark.logs import topic_of
from tests.worker.trials import both_sources

SOURCE = """
import ripple as rp

@rp.record(version=1)
class Trade:
    symbol: str
    size: int

pipeline = (rp.Pipeline("two").source("trades", Trade).partition("by", key="symbol")
    .fold("f", s=rp.sum("size")).partition("all", key=()).fold("total", n=rp.sum("s")).sink("sum"))
"""


def test_each_home_takes_its_own_state_and_names_who_goes_on_with_another() -> None:
    assert of_other_home("p", None, staged=False) == ""
    assert of_other_home("p", 1, staged=True) == ""
    of_one = of_other_home("p", None, staged=True)
    assert "that of one process, with all stages in one partition, and a cluster cannot" in of_one
    assert "resume with ripple run, or ripple spark run, or, if a cluster wrote it, with" in of_one
    assert "ripple checkpoint move; or name another store" in of_one
    assert "its former pipeline of one stage; move it with" in of_one
    of_stages = of_other_home("p", 0, staged=False)
    assert "that of a cluster, with partitions of its own for each stage, and one" in of_stages
    assert "resume with ripple cluster up, or workers; move it with ripple" in of_stages


def test_sources_that_are_divided_otherwise_are_named_as_the_reason() -> None:
    plan = both_sources().plan()
    assert other_division(plan, None, divides=False) == ""
    assert other_division(plan, 0, divides=True) == ""
    anew = other_division(plan, 0, divides=False)
    assert "is that of a cluster that divides records anew, and none are, of these" in anew
    alike = other_division(plan, None, divides=True)
    assert "of a run, or a cluster, that divides no records anew, and some are, of these" in alike
    assert other_division(both_sources(further=True).plan(), 0, divides=False) == ""


def test_state_of_a_run_is_refused_before_a_cluster_starts(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file, store = tmp_path / "two.py", tmp_path / "dir" / "store"
    file.write_text(SOURCE)
    rows = [{"symbol": symbol, "size": 1} for symbol in "AB"]
    log = topic_of(tmp_path, load_plan(f"{file}"), rows, partitions=1)
    places = ["--source", log, "--sink", f"log:{tmp_path}/sum"]
    assert main(["run", f"{file}", *places, "--checkpoint-dir", f"{store}"]) == 0

    async def checked(*, staged: bool) -> None:
        async with store_to_read(f"{store}") as opened:
            await check_home(opened, load_plan(f"{file}"), staged=staged)

    asyncio.run(checked(staged=False))
    with pytest.raises(ChangedPlanError, match="a cluster cannot resume from it"):
        asyncio.run(checked(staged=True))
    capfd.readouterr()
    assert main(["cluster", "up", f"{file}", *places, "--dir", f"{tmp_path}/dir"]) == 1
    assert "the state of 'two' is that of one process" in capfd.readouterr().err


def test_other_code_and_wrong_settings_are_refused_before_a_cluster_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "one.py"
    code = SOURCE.replace('.partition("all", key=()).fold("total", n=rp.sum("s"))', "")
    file.write_text(code)
    log = topic_of(tmp_path, load_plan(f"{file}"), [{"symbol": "A", "size": 1}], partitions=1)
    given = [f"{file}", "--source", log, "--sink", f"log:{tmp_path}/sum"]
    assert main(["run", *given, "--checkpoint-dir", f"{tmp_path}/dir/store"]) == 0
    file.write_text(code.replace("rp.sum", "rp.max"))
    capfd.readouterr()
    assert main(["cluster", "up", *given, "--dir", f"{tmp_path}/dir"]) == 1
    refused = capfd.readouterr().err
    assert "the state of fold 'f' in the checkpoint does not fit" in refused
    assert "worker-1" not in refused
    file.write_text(code)
    monkeypatch.setenv("RIPPLE_HEARTBEAT_INTERVAL_MS", "soon")
    assert main(["cluster", "up", *given, "--dir", f"{tmp_path}/dir", "--free-ports"]) == 1
    refused = capfd.readouterr().err
    assert refused.startswith("ripple: heartbeat_interval_ms is 'soon', not an integer")
    assert "worker-1" not in refused


def test_a_new_branch_is_taken_by_a_cluster_as_by_one_process(tmp_path: Path) -> None:
    file = tmp_path / "one.py"
    keyed = SOURCE.partition("pipeline = ")[0] + (
        'start = rp.Pipeline("two").source("trades", Trade)\n'
        'keyed = start.partition("by", key="symbol")\n'
    )
    one = 'keyed.fold("f", s=rp.sum("size")).sink("sum")'
    most = 'keyed.fold("most", m=rp.max("size")).sink("out")'
    file.write_text(f"{keyed}pipeline = {one}")
    rows = [{"symbol": "A", "size": 1}]
    log = topic_of(tmp_path, load_plan(f"{file}"), rows, partitions=1)
    given = [f"{file}", "--source", log, "--sink", f"log:{tmp_path}/sum"]
    assert main(["run", *given, "--checkpoint-dir", f"{tmp_path}/store"]) == 0

    async def checked(pipeline: str) -> None:
        file.write_text(f"{keyed}pipeline = {pipeline}")
        async with store_to_read(f"{tmp_path}/store") as opened:
            await check_code(opened, load_plan(f"{file}"), divides=False)

    asyncio.run(checked(f"{one}.also({most})"))
    asyncio.run(checked(f'{one}.also(start.sink("events", key="symbol"))'))
    # Shown by an output that is there: its rows would have to be taken back.
    with pytest.raises(ChangedPlanError, match="the state of fold 'most' in"):
        asyncio.run(checked(most.replace('"out"', '"sum"')))
    with pytest.raises(ChangedPlanError, match=r"the state of fold 'f' .* does not fit"):
        asyncio.run(checked(f"{one.replace('rp.sum', 'rp.min')}.also({most})"))


def test_an_ask_of_rows_that_were_counted_without_it_is_refused_before_a_cluster_starts(
    tmp_path: Path,
) -> None:
    file = tmp_path / "one.py"
    begun = SOURCE.partition("pipeline = ")[0] + (
        "@rp.record(version=1)\nclass Grade:\n    grade: int\n\n"
        "async def grade(row):\n    return Grade(row.size)\n\n"
        'start = rp.Pipeline("two").source("trades", Trade)\n'
    )
    one = 'start.ask("first", grade, into=Grade).sink("sum", key="symbol")'
    more = 'start.ask("more", grade, into=Grade).sink("out", key="symbol")'
    file.write_text(f"{begun}pipeline = {one}")
    log = topic_of(tmp_path, load_plan(f"{file}"), [{"symbol": "A", "size": 1}], partitions=1)
    given = [f"{file}", "--source", log, "--sink", f"log:{tmp_path}/sum"]
    assert main(["run", *given, "--checkpoint-dir", f"{tmp_path}/store"]) == 0

    async def checked(pipeline: str) -> None:
        file.write_text(f"{begun}pipeline = {pipeline}")
        async with store_to_read(f"{tmp_path}/store") as opened:
            await check_code(opened, load_plan(f"{file}"), divides=False)

    asyncio.run(checked(one))
    with pytest.raises(PlanError, match="'more' was not asked up to trades 1, and outputs hold"):
        asyncio.run(checked(f"{one}.also({more})"))
    # A damaged log is its partition's alone.
    for answers in (tmp_path / "store/two/00000/answers").iterdir():
        answers.write_bytes(b"")
    asyncio.run(checked(f"{one}.also({more})"))


class Slow(MemoryStore):
    """Answers nothing about a folder when it is asked for the first time."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: set[str] = set()

    async def list(self, prefix: str) -> list[str]:
        """Refuse once, then list."""
        if prefix not in self.refused:
            self.refused.add(prefix)
            raise StoreError(f"list {prefix}: 503 SlowDown", done=False)
        return await super().list(prefix)


def test_one_answer_that_a_remote_store_does_not_give_ends_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    store = Slow()

    @asynccontextmanager
    async def opened(*_: object, **__: object) -> AsyncIterator[Slow]:
        yield store

    monkeypatch.setattr(durable, "open_store", opened)
    file = tmp_path / "two.py"
    file.write_text(SOURCE)
    log = topic_of(tmp_path, load_plan(f"{file}"), [{"symbol": "A", "size": 1}], partitions=1)
    given = ["--source", log, "--sink", f"log:{tmp_path}/sum", "--checkpoint-dir", "s3://b/p"]
    assert main(["run", f"{file}", *given]) == 0, capfd.readouterr().err
    assert "two/00000/manifest/" in store.refused
