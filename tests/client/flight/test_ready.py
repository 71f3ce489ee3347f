"""When a gateway may be asked: once it has heard all, and from then on unless it hears nobody."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from ripple.client.flight.process import _State, serve
from ripple.client.flight.settings import SETTINGS, load
from ripple.client.flight.writing import Written
from ripple.control.daemon import Daemon
from ripple.core.setting import SettingsError
from ripple.core.settings import arguments
from ripple.storage.log import LogError
from ripple.world import LiveClock, live_world
from ripple.world.errors import DiskLockedError
from ripple.world.live_control import LiveControl
from ripple.world.ports import INLINE


def test_ready_gateway_stays_ready_while_a_worker_is_away() -> None:
    state = _State()
    ready: Any = state.pages()["/ready"]
    assert (ready().status, ready().body) == (503, "NOT READY: no coordinator has answered yet\n")
    places = SimpleNamespace(processes={"worker-1/0": "a:1", "worker-2/0": "b:1"})
    observer: Any = SimpleNamespace(places=places, connected=frozenset({"worker-1/0"}), refusal="")
    state.observer = observer
    assert (ready().status, ready().body) == (503, "NOT READY: not connected to worker-2/0\n")
    for connected, status in (
        ({"worker-1/0", "worker-2/0"}, 200),
        ({"worker-2/0"}, 200),
        (set(), 503),
        ({"worker-1/0"}, 200),
    ):
        observer.connected = frozenset(connected)
        assert ready().status == status, connected
    observer.refusal = "coordinators refuse access"
    assert (ready().status, ready().body) == (503, "NOT READY: coordinators refuse access\n")


def test_a_certificate_that_runs_out_is_no_secret_of_a_gateway() -> None:
    for concern in ("", "the certificate in c.crt runs out in 3 days"):
        validity: Any = SimpleNamespace(concern=concern)
        health: Any = _State(validity).pages()["/health"]
        said = json.loads(health().body)
        assert said == {"status": "ok"} | ({"problems": [concern]} if concern else {})


def test_a_port_that_is_taken_is_told_by_its_setting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        given = [f"--health-port={port}", "--port=1"]
        settings = load(arguments(SETTINGS, given), {}, {})
        world = live_world(".", control=LiveControl())
        told = rf"health_port is {port} \(from --health-port\).* or RIPPLE_HEALTH_PORT"
        with pytest.raises(SettingsError, match=told):
            asyncio.run(serve(world, settings, lambda _: None, asyncio.Event()))


@pytest.mark.parametrize(
    ("write", "told"),
    [
        ("x", "'x' is not NAME=log:DIR/TOPIC"),
        ("x=kafka:b/t", "'kafka:b/t' is not of the form log:DIR/TOPIC"),
        ("x=log:d/t/0", "log:d/t/0 is one partition: name the topic, log:d/t"),
        ("x=log:d/t,x=log:d/u", "'x=log:d/u' is there twice"),
        ("x=log:d/t,y=log:./d/t", "x and y are the same log"),
    ],
)
def test_logs_that_clients_write_are_checked_before_anything_begins(write: str, told: str) -> None:
    with pytest.raises(SettingsError, match=rf"write: {re.escape(told)} \(from --write"):
        load(arguments(SETTINGS, ["--write", write]), {}, {})


@pytest.mark.parametrize(
    "given", ["sql-timeout-s=0", "sql-timeout-s=86401", "sql-memory-mib=1048577"]
)
def test_questions_have_a_bound(given: str) -> None:
    name, _, value = given.partition("=")
    with pytest.raises(SettingsError, match=f"{name.replace('-', '_')} is {value}, not from 1 to "):
        load(arguments(SETTINGS, [f"--{given}"]), {}, {})


def test_log_of_somebody_else_and_one_that_is_not_there_are_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    place = f"log:{tmp_path}/trades"
    with pytest.raises(LogError, match=f"cannot write {place}: trades: there is no topic: create "):
        Written(place, LiveClock(), "a test", INLINE)

    def held(*_: object) -> NoReturn:
        raise DiskLockedError("d/trades/0/lock", "a test")

    assert Daemon("ripple-gateway", SETTINGS, held, held).main([]) == 1
    told = "ripple-gateway: d/trades/0/lock: is held by a test: stop that one first\n"
    assert capfd.readouterr().err == told
