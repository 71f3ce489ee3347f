"""A host: real processes, each started and ended by the record, independently of the others."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from ripple.control.assignment.pipelines import Hosted
from ripple.core.setting import SettingsError
from ripple.core.settings import arguments
from ripple.world import LiveClock
from tests.patience import comes
from worker.host.arguments import arguments_of, data_port
from worker.host.child import Child
from worker.settings import SETTINGS, Settings, flags_of, load

ONE = Hosted("one", 3, "folder/one.py:p", "log:in", ("rows=log:out/one",), 4)
RUNS = "trap 'exit 0' TERM; while :; do sleep 0.01; done"


def settings_of(*more: str) -> Settings:
    given = ["--pipelines=code", "--store=state", "--coordinator=localhost:9200", *more]
    return load(arguments(SETTINGS, given), {}, {})


def test_a_worker_gets_the_settings_of_its_host_and_of_the_record() -> None:
    settings = settings_of("--worker-id=w7", "--lanes=lanes", "--keep=5", "--rpc-port=9101")
    given = arguments_of(
        settings,
        ONE,
        rpc_port=data_port(settings, ONE),
        health_port=7001,
        metrics_port=7002,
    )
    own = load(arguments(SETTINGS, flags_of(given)), {}, {})
    assert (own.pipeline, own.pipeline_name, own.store) == (
        "code/folder/one.py:p",
        "one",
        "state/pipelines/one",
    )
    assert (own.sources, own.sinks, own.lanes) == (("log:in",), ONE.sinks, "lanes/one")
    assert (own.worker_id, own.keep, own.processes) == ("w7", 5, 1)
    assert (own.rpc_port, own.health_port, own.metrics_port) == (9161, 7001, 7002)
    assert own.end_with_stdin
    assert not own.pipelines


@pytest.mark.parametrize("flag", ["--source=log:in", "--pipeline=x.py", "--partitions=1"])
def test_settings_of_one_pipeline_are_refused_beside_several(flag: str) -> None:
    with pytest.raises(SettingsError, match="is of one pipeline: leave it out beside pipelines"):
        settings_of(flag)


def test_pages_are_for_this_machine_unless_they_may_be_read() -> None:
    with pytest.raises(SettingsError, match="without TLS the network could read and change"):
        settings_of("--host=192.0.2.1")


class Commands:
    """The command lines of starts: the file of a pipeline, as a script for /bin/sh."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.revisions: list[int] = []

    async def __call__(self, hosted: Hosted) -> Sequence[str]:
        self.revisions.append(hosted.revision)
        return ["/bin/sh", "-c", hosted.file]


@asynccontextmanager
async def child() -> AsyncIterator[tuple[Child, Commands]]:
    commands = Commands()
    one = Child("one", commands, LiveClock(), commands.said.append, end_s=5)
    try:
        yield one, commands
    finally:
        one.want(None)
        await one.ended()
        assert one.pid == 0


async def test_a_worker_that_ends_is_started_again() -> None:
    async with child() as (one, commands):
        one.want(replace(ONE, file="exit 7"))
        await comes(lambda: one.starts >= 2)
        assert one.problem == "it has ended with exit code 7"
        assert any("with exit code 7; starts again in 1 s" in line for line in commands.said)


async def test_a_stopped_pipeline_has_no_worker_until_it_is_started() -> None:
    async with child() as (one, commands):
        one.want(replace(ONE, file=RUNS))
        await comes(lambda: one.pid != 0)
        one.want(replace(ONE, file=RUNS, is_stopped=True, revision=2))
        await comes(lambda: one.pid == 0)
        one.want(replace(ONE, file=RUNS, revision=3))
        await comes(lambda: one.pid != 0)
        assert commands.revisions == [1, 3]
        assert not one.problem


async def test_a_changed_pipeline_begins_once_the_former_worker_has_ended(tmp_path: Path) -> None:
    file = tmp_path / "said"
    over = f"trap 'sleep 0.1; echo over >> {file}; exit 0' TERM"
    code = f"{over}; echo begun >> {file}; while :; do sleep 0.01; done"
    async with child() as (one, _):
        one.want(replace(ONE, file=code))
        await comes(lambda: file.exists() and file.read_text() == "begun\n")
        one.want(replace(ONE, file=code, revision=2))
        await comes(lambda: file.read_text().splitlines() == ["begun", "over", "begun"])


async def test_a_worker_that_does_not_end_is_killed() -> None:
    commands = Commands()
    one = Child("one", commands, LiveClock(), commands.said.append, end_s=0.1)
    one.want(replace(ONE, file="trap '' TERM; while :; do sleep 0.01; done"))
    await comes(lambda: one.pid != 0)
    one.want(None)
    async with asyncio.timeout(5):
        await one.ended()
    assert any("has not ended in 0.1 s: killed" in line for line in commands.said)


async def test_a_command_that_is_not_there_is_tried_again() -> None:
    async def none(_: Hosted) -> Sequence[str]:
        return [f"{sys.executable}-that-is-not-there"]

    said: list[str] = []
    one = Child("one", none, LiveClock(), said.append, end_s=1)
    one.want(ONE)
    await comes(lambda: any("ended before it began" in line for line in said))
    one.want(None)
    await one.ended()
