"""``ripple cluster`` where something is wrong; what it does is tried with real coordinators."""

from __future__ import annotations

import argparse
import asyncio
import socket
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from coordinator.decisions.status import Status
from ripple.cli.cluster.cluster import ALIASES
from ripple.cli.cluster.query import limits_of
from ripple.cli.cluster.starting.at_work import AtWork, at_work
from ripple.cli.cluster.status_page import print_status
from ripple.cli.cluster.up import _OF_DASHBOARD, _OF_EXTRAS, check_begun
from ripple.cli.lib import client_options
from ripple.cli.main import main as ripple
from ripple.control.assignment import AssignmentChain, Stage, empty
from ripple.core.errors import InputError
from ripple.storage.store import DiskStore
from ripple.world import LiveDisk, LiveRandom
from tests.cli import fork_server
from tests.cli.processes import RIPPLE, Ended, run
from tests.coordinator.messages import STATUS
from tests.patience import PATIENCE_S


def cluster(*arguments: str) -> Ended:
    return run(RIPPLE, "cluster", *arguments)


def test_unreachable_coordinators_end_with_exit_code_2() -> None:
    ended = cluster("status", "--coordinator", "localhost:1,127.0.0.1:2")
    assert ended.code == 2
    assert ended.out == ""
    assert ended.only_line.startswith("ripple: no coordinator answers: localhost:1: ")
    assert "127.0.0.1:2: " in ended.only_line


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["status", "--coordinator", "node-1"], "node-1:9200 is not on this machine"),
        (["status", "--coordinator", "a:b:99999"], "is no address"),
        (["status", "--coordinator", ","], "is empty"),
        (["status", "--tls-key", "k"], "TLS needs --tls-certificate"),
        (["freeze"], "the following arguments are required: --reason"),
        (["pin", "8192", "w1", "--reason", "r"], "partitions are 0 to 8191 at most"),
        (["pin", "-1", "w1", "--reason", "r"], "--reason"),
        (["melt"], "invalid choice: 'melt'"),
    ],
)
def test_invalid_arguments_are_named(arguments: list[str], problem: str) -> None:
    ended = cluster(*arguments)
    assert ended.code == 1
    assert problem in ended.err or arguments[1:2] == ["-1"]


UP = ["cluster", "up", "x.py", "--source", "log:a/b", "--sink", "log:a/c", "--dir", "d"]
COMMAND, COORDINATOR, GATEWAY = (
    "ripple.cli.main",
    "coordinator.__main__",
    "ripple.client.flight.__main__",
)


def without(absent: str, module: str, given: list[str], folder: Path) -> Ended:
    """Run a program where a package is missing."""
    asked = [absent, module, *given]
    code, out, err = fork_server.run("tests.cli.without", asked, b"", PATIENCE_S, folder=folder)
    return Ended(code, out.decode(), err.decode())


@pytest.mark.parametrize(
    ("absent", "module", "given", "extra"),
    [
        ("grpc", COMMAND, ["cluster", "status"], "cluster"),
        ("google", COMMAND, ["cluster", "status"], "cluster"),
        ("google", COMMAND, ["drain", "w1", "--reason", "r"], "cluster"),
        ("google", COMMAND, ["query", "--list"], "cluster"),
        ("grpc", COMMAND, UP, "cluster"),
        ("google", COMMAND, UP, "cluster"),
        ("structlog", COMMAND, UP, "cluster"),
        ("prometheus_client", COMMAND, UP, "cluster"),
        ("aiohttp", COMMAND, [*UP, "--dashboard"], "dashboard"),
        ("grpc", COORDINATOR, ["--store", "state"], "cluster"),
        ("grpc", GATEWAY, [], "cluster"),
        ("google", GATEWAY, [], "cluster"),
    ],
)
def test_missing_extra_is_named_with_what_installs_it(
    absent: str, module: str, given: list[str], extra: str, tmp_path: Path
) -> None:
    ended = without(absent, module, given, tmp_path)
    assert ended.code == 1
    assert f"pip install 'ripple-stream[{extra}]'" in ended.only_line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("module", "given"),
    [(GATEWAY, ["--help"]), (COMMAND, ["status", "--help"]), (COMMAND, ["cluster", "--help"])],
)
def test_help_needs_no_extra(module: str, given: list[str], tmp_path: Path) -> None:
    ended = without("google", module, given, tmp_path)
    assert (ended.code, ended.err) == (0, "")


def test_coordinator_without_what_shows_its_dashboard_ends_in_good_order(tmp_path: Path) -> None:
    ports = ["--port", "0", "--health-port", "0", "--metrics-port", "0"]
    given = ["--store", "state", "--dashboard", *ports]
    ended = without("aiohttp", COORDINATOR, given, tmp_path)
    assert ended.code == 1
    assert "pip install 'ripple-stream[dashboard]'" in ended.only_line


@pytest.mark.parametrize("module", [*_OF_EXTRAS, _OF_DASHBOARD])
def test_modules_imported_before_a_cluster_starts_exist(module: str) -> None:
    assert find_spec(module) is not None


def test_result_of_a_question_is_bounded_by_its_memory() -> None:
    given = {"timeout": 30, "memory": 512}
    for form, bytes_max in ("csv", 512 << 20), ("text", 32 << 20), ("json", 32 << 20):
        assert limits_of(argparse.Namespace(format=form, **given))["bytes_max"] == bytes_max


def test_status_is_told_in_tables(capsys: pytest.CaptureFixture[str]) -> None:
    print_status("localhost:9200", STATUS, has_partitions=True)
    assert (
        capsys.readouterr().out
        == """\
Ripple Cluster Status
----------------------------------------------------
Coordinator:  localhost:9200 (replica c1, hears c2)
Format:       text
Status:       [connected]
Workers:      1/2 active
Partitions:   7 of 8 assigned
Version:      9: w2 joins

WORKER  STANDING            SILENT  LOAD  QUEUES              PARTITIONS  SINCE      ADDRESSES
w1      active              0.2 s   0.00  slow: outboxes 83%  4           version 3  health=w1:9100
w2      suspected, leaving  4.1 s   -     -                   3           version 9

MOVES  FROM  TO    PHASE
2      w1/0  w2/0  warming

PINNED  TO  WHY
0       w1  its cache

WAITS TO JOIN  WHY
w3             joins soon

ALERT            SEVERITY  WORKER  FOR   WHY
CheckpointStale  critical  w1      12 s  partition 3: 25 s
SchemaMismatch   critical  w9      1 s   its code differs

PARTITION  STAGE   NUMBER  OWNER  SINCE      STANDBY
0          main    0       w1/0   version 3  w2/0
1          totals  0       -      version 0  -
! w2 is suspected: silent for 4 s
"""
    )


def test_status_of_an_empty_cluster_is_short(capsys: pytest.CaptureFixture[str]) -> None:
    print_status("h:1", Status("c", 0, "", "why", 128, 128, (), (), (), (), (), ()))
    assert (
        capsys.readouterr().out
        == """\
Ripple Cluster Status
----------------------------------------------------
Coordinator:  h:1 (replica c, hears no other)
Format:       text
Status:       [connected]
Workers:      0/0 active
Partitions:   0 of 128 assigned
Version:      none yet
Frozen:       why
"""
    )


@pytest.mark.parametrize("stages", [[], [Stage("repartition", 1)], [Stage("repartition-q", 2)]])
def test_cluster_that_has_begun_keeps_its_number_of_partitions(
    stages: list[Stage], tmp_path: Path
) -> None:
    store = str(tmp_path / "store")
    main = Stage("main", 8 if stages and stages[0].name == "repartition" else 1)
    check_begun(store, 4)  # there is none

    async def begin() -> None:
        chain = AssignmentChain(DiskStore(LiveDisk(store), LiveRandom()), "a")
        first = empty([*stages, main])
        reading = await chain.newest()
        assert await chain.propose(reading, replace(first, version=1))

    asyncio.run(begin())
    check_begun(store, 1)
    with pytest.raises(InputError, match="has 1 partition, for ever, not 4: leave --partitions"):
        check_begun(store, 4)
    count = main.partitions
    check_begun(store, None, [("main", count), ("stage-1", 3)])
    told = f"of main, for ever, and the pipeline has 3: .* partitions={count}\\) there again"
    with pytest.raises(InputError, match=told):
        check_begun(store, None, [("repartition", 0), ("main", 3)])


async def test_partitions_at_work_are_those_that_a_coordinator_tells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pages = {
        "a": "ripple_coordinator_partitions 2\nripple_coordinator_partitions_live 1\n",
        "b": "# HELP ripple_coordinator_partitions of all stages\n",
    }

    async def page(address: str, _: str) -> str:
        if address not in pages:
            raise ConnectionError("nobody")
        return pages[address]

    monkeypatch.setattr("ripple.cli.cluster.starting.at_work.page_at", page)
    assert await at_work(["b", "a", "c"]) == AtWork(1, 2)
    assert not AtWork(1, 2).is_all
    assert not AtWork(0, 0).is_all
    assert AtWork(2, 2).is_all


async def test_a_worker_that_says_nothing_is_reported_with_the_time_it_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_options, "PAGE_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host, port = silent.getsockname()
        asked = replace(STATUS.members[0], addresses=(("health", f"{host}:{port}"),))
        _, why = await client_options.pages([asked], "health", "/graph")
    assert why == {"w1": "no answer within 0.1 s"}


def test_commands_of_a_cluster_have_one_name_in_the_help_and_a_working_alias() -> None:
    text = cluster("--help").out
    for name in ALIASES:
        assert f"    {name} " not in text
        arguments = [*(["3", "w"] if name == "move" else ["w"] if name != "status" else [])]
        reason = [] if name == "status" else ["--reason", "r"]
        ended = cluster(name, *arguments, *reason, "--coordinator", "localhost:1")
        assert (ended.code, ended.only_line.count("no coordinator answers")) == (2, 1)


def test_texts_of_operators_do_not_control_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def status_of(_: object) -> tuple[str, Status]:
        return "h:1", STATUS

    monkeypatch.setattr(client_options, "status_of", status_of)
    assert ripple(["move", "0", "w2", "--reason", "one\ntwo\x1b[2J", "--dry-run"]) == 0
    pins = ((0, "w1", "one\ntwo"),)
    print_status("h:1", Status("c", 3, "why\nnot", "a\nb", 1, 1, (), (), pins, (), (), ()))
    shown = capsys.readouterr().out
    assert "moves to w2: one\\ntwo\\x1b[2J" in shown
    assert "Version:      3: why\\nnot" in shown
    assert "\nFrozen:       a\\nb\n" in shown
    assert shown.rstrip().endswith("one\\ntwo")
