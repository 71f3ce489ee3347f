"""``ripple-coordinator`` as a process: started, asked, killed, stopped, with real members."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from urllib.error import HTTPError

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from ripple.control.assignment import (
    Alert,
    Assignment,
    AssignmentChain,
    Candidate,
    Code,
    Demand,
    Report,
)
from ripple.control.rpc.methods import SERVICE
from ripple.storage.store import DiskStore
from ripple.world import LiveDisk, live_world
from ripple.world.live_control import LiveControl
from tests.cli.processes import RIPPLE, ROOT
from tests.cli.processes import run as run_command
from tests.control.assignment.examples import CODE, candidate
from tests.patience import PATIENCE_S, comes
from tests.services.server import free_port
from worker.supervisor.membership import Membership

COORDINATOR = [sys.executable, "-m", "coordinator", "--log-format", "text"]
QUICK = ("--partitions=4", "--version-interval-ms=100", "--jitter-ms=50")
FAST = (*QUICK, "--join-collect-ms=200")
# Two who start one after the other join together, and a slow machine is not taken for a dead one.
PATIENT = (
    *QUICK,
    "--join-collect-ms=3000",
    "--suspected-after-ms=60000",
    "--dead-after-ms=120000",
    "--ended-after-ms=60000",
)
FREE = ("--port=0", "--health-port=0", "--metrics-port=0")
LISTENS = re.compile(r"listens at (\S+), /health and /ready at (\S+), /metrics at (\S+)")


class Process:
    """A coordinator that listens."""

    def __init__(self, store: Path, *arguments: str) -> None:
        ports = FREE[1:] if "--port" in arguments else FREE
        self.process = subprocess.Popen(
            [*COORDINATOR, "--store", str(store), *ports, *arguments],
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert self.process.stderr is not None
        found = None
        while found is None:
            line = self.process.stderr.readline()
            assert line, "it has ended"
            found = LISTENS.search(line)
        self.address, self.probes, self.metrics = found.groups()

    def end(self, number: int) -> tuple[int, str]:
        """Send a signal; return the exit code, and what it has written since it listens."""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, said

    def page(self, path: str) -> tuple[int, str]:
        where = self.metrics if path in ("/metrics", "/scale") else self.probes
        try:
            with urllib.request.urlopen(f"http://{where}{path}", timeout=PATIENCE_S) as reply:
                return reply.status, reply.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()

    async def look(self, path: str) -> str:
        """Return a page, while members of the same loop go on."""
        return (await asyncio.to_thread(self.page, path))[1]


@contextmanager
def started(store: Path, *arguments: str, pace: tuple[str, ...] = FAST) -> Iterator[Process]:
    one = Process(store, *pace, *arguments)
    try:
        yield one
    finally:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


class Worker:
    """A member over real gRPC that holds nothing."""

    def __init__(
        self,
        name: str,
        store: Path,
        *coordinators: str,
        report: Report | None = None,
        code: Code = CODE,
    ) -> None:
        self.code = code
        world = live_world(store, control=LiveControl())
        chain = AssignmentChain(DiskStore(LiveDisk(store)))
        self.name = name
        self.now: Assignment | None = None
        self.incarnation: int | None = None
        self.membership = Membership(
            world,
            chain,
            coordinators,
            self.asks,
            lambda: report or Report(),
            self.heard,
            heartbeat_interval_ms=200,
        )

    def asks(self, nonce: str) -> Candidate:
        return replace(candidate(self.name, nonce), inputs=(), code=self.code)

    def heard(self, version: Assignment, incarnation: int | None) -> None:
        self.now, self.incarnation = version, incarnation


async def until_shown(one: Process, path: str, text: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while text not in await one.look(path):
            await asyncio.sleep(0.02)


@asynccontextmanager
async def joined(*workers: Worker) -> AsyncIterator[tuple[Worker, ...]]:
    """Workers that take part, and are members."""
    running = [asyncio.ensure_future(each.membership.run()) for each in workers]
    try:
        await comes(lambda: all(each.incarnation for each in workers))
        yield workers
        assert not any(task.done() for task in running)
    finally:
        for task in running:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*running)


@pytest.mark.services
async def test_members_outlive_a_killed_coordinator_and_are_found_again(tmp_path: Path) -> None:
    port = str(free_port())
    with started(tmp_path, "--port", port, pace=PATIENT) as one:
        async with joined(
            *(Worker(name, tmp_path, one.address) for name in ("w1", "w2"))
        ) as workers:
            owned = {each.name: len(each.now.owned_by(each.name)) for each in workers}  # type: ignore[union-attr]
            assert owned == {"w1": 2, "w2": 2}
            one.process.kill()
            one.process.wait()
            with started(tmp_path, "--port", port, pace=PATIENT) as again:
                await until_shown(again, "/metrics", "ripple_coordinator_conversations 2.0")
                assert await again.look("/ready") == "READY\n"
                health = json.loads(await again.look("/health"))
                assert health["workers"] == 2
                assert [each.incarnation for each in workers] == [1, 1]
                await commands_of_people(again.address)
                await workers[0].membership.leave()
                assert workers[0].incarnation is None
                await comes(lambda: len(workers[1].now.owned_by("w2")) == 4)  # type: ignore[union-attr]
                code, said_last = again.end(signal.SIGTERM)
                assert code == 0
                left = [path.name for path in (tmp_path / "views").iterdir()]
                assert not [name for name in left if name.startswith(str(health["replica"]))]
                assert said_last.splitlines()[-1].endswith(" ended")


async def commands_of_people(address: str) -> None:
    """What ``ripple cluster`` shows and does."""

    async def ripple(*arguments: str) -> tuple[int, str, str]:
        given = ("cluster", *arguments, "--coordinator", f"localhost:1,{address}")
        ended = await asyncio.to_thread(run_command, RIPPLE, *given)
        return ended.code, ended.out, ended.err

    code, out, _ = await ripple("status")
    assert code == 0
    assert "Workers:      2/2 active" in out
    assert "Partitions:   4 assigned" in out
    code, out, _ = await ripple("freeze", "--reason", "maintenance", "--json")
    assert code == 0
    assert json.loads(out)["done"] == "frozen: maintenance"
    code, out, _ = await ripple("status", "--json")
    assert json.loads(out)["frozen"] == "maintenance"
    code, _, err = await ripple("move", "0", "w1", "--reason", "why not")
    assert code == 1
    assert f"{address} refuses: the assignment is frozen (maintenance): unfreeze it first" in err
    assert (await ripple("unfreeze", "--reason", "done"))[0] == 0


async def test_two_coordinators_hear_each_other_and_speak_the_standard_services(
    tmp_path: Path,
) -> None:
    with started(tmp_path) as one, started(tmp_path, "--peers", one.address) as two:
        async with joined(Worker("w1", tmp_path, one.address, two.address)):
            await until_shown(two, "/metrics", "ripple_coordinator_replicas_heard 1.0")
            async with grpc.aio.insecure_channel(one.address) as channel:
                health = health_pb2_grpc.HealthStub(channel)
                for service in ("", SERVICE):
                    asked = health_pb2.HealthCheckRequest(service=service)
                    reply = await health.Check(asked, timeout=PATIENCE_S)
                    assert reply.status == health_pb2.HealthCheckResponse.SERVING
                reflection = reflection_pb2_grpc.ServerReflectionStub(channel)
                asked = reflection_pb2.ServerReflectionRequest
                questions = iter((asked(list_services=""), asked(file_containing_symbol=SERVICE)))
                replies = [reply async for reply in reflection.ServerReflectionInfo(questions)]
                listed = [each.name for each in replies[0].list_services_response.service]
                assert SERVICE in listed
                assert replies[1].file_descriptor_response.file_descriptor_proto
        code, said = two.end(signal.SIGINT)
        assert code == 130
        assert "Traceback" not in said


async def test_alerts_of_members_and_strangers_are_shown_everywhere(tmp_path: Path) -> None:
    stale = Alert("CheckpointStale", "critical", "partition 3 has had none for 25 s", 5.0)

    async def shown(one: Process) -> None:
        listed = json.loads(await one.look("/alerts"))
        assert listed[0] == {"worker": "w1"} | asdict(stale)
        assert listed[1]["worker"] == "w2"
        assert "w2 does not fit this cluster: its plan hash is other" in listed[1]["cause"]
        for name, count in (("CheckpointStale", 1), ("SchemaMismatch", 1), ("WorkerSilent", 0)):
            told = f'ripple_coordinator_alerts{{alert="{name}"}} {count}.0'
            assert told in await one.look("/metrics")
        given = ("cluster", "status", "--coordinator", one.address)
        text = await asyncio.to_thread(run_command, RIPPLE, *given)
        assert "CheckpointStale  critical  w1" in text.out
        as_json = await asyncio.to_thread(run_command, RIPPLE, *given, "--json")
        found = json.loads(as_json.out)["alerts"]
        assert found[0] == {"worker": "w1", "alert": asdict(stale)}

    with started(tmp_path) as one:
        member = Worker("w1", tmp_path, one.address, report=Report(alerts=(stale,)))
        other = Worker("w2", tmp_path, one.address, code=replace(CODE, plan_hash="other"))
        async with joined(member):
            late = asyncio.ensure_future(other.membership.run())
            await until_shown(one, "/alerts", '"w2"')
            await shown(one)
            late.cancel()


async def test_each_coordinator_says_how_many_workers_the_load_needs(tmp_path: Path) -> None:
    busy = Report(demand=Demand(busy=0.9, live=4))
    with (
        started(tmp_path, "--scale-up-after-ms", "1") as one,
        started(tmp_path, "--scale-up-after-ms", "1", "--peers", one.address) as two,
    ):
        assert await one.look("/scale") == "NOT KNOWN: a worker has not reported its load yet\n"
        async with joined(Worker("w1", tmp_path, one.address, report=busy)):
            for each in (one, two):
                await until_shown(each, "/scale", '"wanted": 2, "now": 1')
                assert "ripple_coordinator_workers_wanted 2.0" in await each.look("/metrics")
            given = ("cluster", "status", "--coordinator", two.address)
            text = await asyncio.to_thread(run_command, RIPPLE, *given)
            assert "1/1 active, 2 are wanted: 90 % busy, 60 % are meant" in text.out


def test_second_signal_ends_at_once(tmp_path: Path) -> None:
    with started(tmp_path) as one:
        one.process.send_signal(signal.SIGSTOP)
        one.process.send_signal(signal.SIGTERM)
        one.process.send_signal(signal.SIGINT)
        code, said = one.end(signal.SIGCONT)
        assert code in (128 + signal.SIGINT, 128 + signal.SIGTERM)
        assert " ended" not in said


def test_not_ready_while_the_store_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "assign").write_bytes(b"")  # a file where the versions' folder would be
    with started(tmp_path) as one:
        deadline = time.monotonic() + PATIENCE_S
        while "ripple_coordinator_ready 0.0" not in one.page("/metrics")[1]:
            assert time.monotonic() < deadline
        assert one.page("/ready")[0] == 503
        assert one.page("/health")[0] == 200
        assert one.page("/nothing")[0] == 404


def test_check_config_says_where_everything_came_from(tmp_path: Path) -> None:
    file = tmp_path / "ripple.toml"
    file.write_text('[coordinator]\nstore = "state"\ninsecure = true\n')
    ended = subprocess.run(
        [*COORDINATOR, "--check-config", "--config", str(file), "--peers", "localhost:9300"],
        env={**os.environ, "RIPPLE_PORT": "9210"},
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=PATIENCE_S,
        check=True,
    )
    for line in (
        'store = "state"  # coordinator.store in the file',
        "port = 9210  # RIPPLE_PORT",
        'peers = "localhost:9300"  # --peers',
        "insecure = true  # coordinator.insecure in the file",
        "partitions = 128  # default",
    ):
        assert line in ended.stdout.splitlines()
    assert not Path(ROOT, "state").exists()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--stor", "x"], "--stor is no flag: did you mean --store?"),
        ([], "store is missing: give --store or RIPPLE_STORE"),
        (["--store", "gs://bucket/prefix"], "a folder, or s3://bucket/prefix"),
        (["--store", "x", "--host", "0.0.0.0"], "host is 0.0.0.0 (from --host)"),
        (["--store", "x", "--peers", "elsewhere:9200"], "elsewhere:9200 is not on this machine"),
        (["--store", "x", "--peers", "nonsense"], "'nonsense' is no address"),
        (["--store", "x", "--tls-key", "k"], "tls_certificate and tls_authority are missing"),
        (["--store", "x", "--config", "/nowhere"], "/nowhere: No such file or directory"),
        (["--store", "x", "--dead-after-ms", "soon"], "dead_after_ms is 'soon', not an integer"),
    ],
)
def test_bad_flags_are_named(
    arguments: list[str], problem: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from coordinator.__main__ import main

    assert main(arguments) == 1
    said = capfd.readouterr().err
    assert problem in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("name", ["port", "health-port", "metrics-port"])
def test_port_that_is_taken_is_named_with_its_setting(
    tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    from coordinator.__main__ import main

    others = [flag for flag in FREE if not flag.startswith(f"--{name}=")]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        given = ["--store", str(tmp_path), *others, f"--{name}={port}"]
        assert main([*given, "--log-format", "text"]) == 1
    setting = name.replace("-", "_")
    said = capfd.readouterr().err.splitlines()[-1]  # gRPC has its own, too
    assert f"{setting} is {port} (from --{name}), and that port is unavailable: " in said
    assert said.endswith(f"Give another one, as --{name} or RIPPLE_{setting.upper()}")
