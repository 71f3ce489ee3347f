"""Every method of gRPC, every page and everything to ask, as everybody there is."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import aiohttp
import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from coordinator.decisions.commands import Drain, Freeze, Move, PinTo, Undrain, Unfreeze, Unpin
from coordinator.service.handlers import Handlers
from ripple.client.dashboard.entrance import COOKIE
from ripple.client.dashboard.gate import ASKED_MAX, SESSION_S, Gate, is_this_machine
from ripple.client.dashboard.headers import HEADERS
from ripple.client.dashboard.viewers import VIEWERS_MAX
from ripple.client.dashboard.web import BODY_BYTES_MAX, Dashboard
from ripple.control.process_settings import FileOfRoles
from ripple.control.rpc import methods
from ripple.core.access import Caller, Known, Role, access_of
from ripple.world import LiveClock
from ripple.world.control import UNKNOWN_CALLER
from tests.cli.processes import ROOT, ripple
from tests.client.dashboard.callers import COMMANDS, METHODS, OPERATE, READ, TOKENS, WRONG
from tests.client.dashboard.counted import Counted
from tests.patience import PATIENCE_S

LISTENS = re.compile(r"listens at (\S+), .*the dashboard at http://(\S+)/")
REFLECTION = "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"

EVERYBODY = set(Role)

NAMES = {
    Freeze: "freeze", Unfreeze: "unfreeze", PinTo: "pin", Unpin: "unpin", Drain: "drain",
    Undrain: "undrain", Move: "move",
}  # fmt: skip
# Who may ask for what: method, path, route, body.
PAGES = [
    ("GET", "/", "/", None, EVERYBODY),
    ("GET", "/page/app.js", "/page/{name:.+}", None, EVERYBODY),
    ("GET", "/api/me", "/api/me", None, EVERYBODY),
    ("DELETE", "/api/session", "/api/session", None, EVERYBODY),
    ("GET", "/live", "/live", None, READ),
    ("GET", "/api/snapshot", "/api/snapshot", None, READ),
    *(
        ("GET", f"/api/{what}", "/api/{what:[a-z]+}", None, READ)
        for what in (
            "checkpoints",
            "graph",
            "letters",
            "lines",
            "outputs",
            "row",
            "runbook",
            "settings",
            "table",
            "tap",
            "nonsense",
        )
    ),
    ("GET", "/explore", "/explore", None, EVERYBODY),
    ("GET", "/api/rows?output=x", "/api/rows", None, READ),
    ("POST", "/api/query", "/api/query", {"sql": "SELECT 1"}, READ),
    ("POST", "/api/command", "/api/command", {"command": "retry", "partition": 0}, OPERATE),
    *(
        (
            "POST",
            "/api/command",
            "/api/command",
            {"command": NAMES[type(one)], "partition": 0, "worker": "w", "reason": "why"},
            who,
        )
        for one, who in COMMANDS.items()
    ),
]


class Shown(NamedTuple):
    rpc: str
    web: str


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("walk")
    roles = folder / "roles.toml"
    tokens = "".join(f'[{r.value}.tokens]\n{r.value} = "{t}"\n' for r, t in TOKENS.items())
    roles.write_text(f'{tokens}[guest.outputs]\nguest = ["x"]\n')
    roles.chmod(0o600)
    command = [sys.executable, "-m", "coordinator", "--store", str(folder / "store")]
    command += ["--port=0", "--health-port=0", "--metrics-port=0", "--log-format=text"]
    command += ["--dashboard", "--dashboard-port=0", "--command-wait-ms=500"]
    command += ["--roles", str(roles)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert process.stderr is not None
        found = None
        while found is None:
            line = process.stderr.readline()
            assert line, "it has ended"
            found = LISTENS.search(line)
        yield Shown(*found.groups())
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


def test_the_walk_is_over_all_there_is() -> None:
    desk = Handlers.__new__(Handlers)
    desk._access = None
    service = desk.service
    assert {method for method, _, _ in METHODS} == {*service.calls, *service.conversations}
    dashboard = Dashboard(Counted(), Gate(None, lambda: ""), LiveClock())
    # Logging in is told below: who may, is who has a token.
    known = {(method, route) for method, _, route, _, _ in PAGES} | {("POST", "/api/session")}
    assert known == {(method, path) for method, path, _ in dashboard.routes}


async def _called(channel: grpc.aio.Channel, method: str, request: bytes, token: str | None) -> str:
    """Return "" for what was let in, else the reason."""
    metadata = (("authorization", f"Bearer {token}"),) if token else None
    try:
        if method == methods.CONVERSE:
            doing = channel.stream_stream(f"/{method}")(metadata=metadata, timeout=PATIENCE_S)
            await doing.done_writing()
            async for _ in doing:
                pass
        else:
            await channel.unary_unary(f"/{method}")(request, metadata=metadata, timeout=PATIENCE_S)
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.PERMISSION_DENIED:
            return str(error.details())
        if error.code() is not grpc.StatusCode.FAILED_PRECONDITION:
            raise
    return ""


@pytest.mark.parametrize("role", Role)
async def test_each_method_lets_in_whom_it_should(coordinator: Shown, role: Role) -> None:
    async with grpc.aio.insecure_channel(coordinator.rpc) as channel:
        for method, request, allowed in METHODS:
            why = await _called(channel, method, request, TOKENS.get(role, WRONG))
            assert (why == "") == (role in allowed), (method, request, why)
            if role is Role.NOBODY:
                assert why == UNKNOWN_CALLER
                assert await _called(channel, method, request, None) == UNKNOWN_CALLER


async def test_health_is_for_everybody_and_reflection_for_nobody(coordinator: Shown) -> None:
    async with grpc.aio.insecure_channel(coordinator.rpc) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        found = await health.Check(health_pb2.HealthCheckRequest(service=methods.SERVICE))
        assert found.status == health_pb2.HealthCheckResponse.SERVING
        reflection = channel.stream_stream(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
        )
        # Who writes while the refusal comes may see an internal error of gRPC instead.
        assert await reflection(timeout=PATIENCE_S).code() is grpc.StatusCode.UNIMPLEMENTED


async def test_each_page_lets_in_whom_it_should(coordinator: Shown) -> None:
    # At once: some pages look for a while whether anybody shows an output.
    async def walk(role: Role, how: str) -> None:
        base = f"http://{coordinator.web}"
        jar = aiohttp.CookieJar(unsafe=True)
        headers = {"Authorization": f"Bearer {TOKENS[role]}"} if role in TOKENS else {}
        async with aiohttp.ClientSession(base, cookie_jar=jar) as session:
            if how == "session":
                headers = {}
                given = {"token": TOKENS.get(role, "")}
                async with session.post("/api/session", json=given) as response:
                    assert response.status == (200 if role in READ else 401)
            for method, path, _, body, allowed in PAGES:
                if method == "DELETE":
                    continue
                async with session.request(method, path, json=body, headers=headers) as response:
                    refused = response.status in (401, 403)
                    said = (role, how, method, path, body, response.status)
                    assert refused == (role not in allowed), said
                    assert response.status != 500
            async with session.delete("/api/session", headers=headers) as response:
                assert response.status == 200
            async with session.get("/api/snapshot") as response:
                assert response.status == 401  # the session is over

    await asyncio.gather(*(walk(role, how) for role in Role for how in ("token", "session")))


async def test_every_answer_has_the_headers(coordinator: Shown) -> None:
    async with aiohttp.ClientSession(f"http://{coordinator.web}") as session:
        for path in (
            "/",
            "/page/app.js",
            "/api/me",
            "/api/snapshot",
            "/nothing",
            "/page/../web.py",
        ):
            async with session.get(path) as response:
                for name, value in HEADERS.items():
                    kept = "no-cache" if path == "/page/app.js" else "no-store"
                    wanted = kept if name == "Cache-Control" else value
                    assert response.headers[name] == wanted, (path, name)
                assert response.headers["Server"] == "ripple"
        assert "script-src 'self';" in HEADERS["Content-Security-Policy"]
        assert "unsafe" not in HEADERS["Content-Security-Policy"]


async def test_a_cookie_is_for_our_pages_alone(coordinator: Shown) -> None:
    async with aiohttp.ClientSession(f"http://{coordinator.web}") as session:
        given = {"token": TOKENS[Role.ADMIN]}
        async with session.post("/api/session", json=given) as response:
            said = response.headers["Set-Cookie"]
        assert COOKIE in said
        assert "HttpOnly" in said
        assert "SameSite=Strict" in said
        assert TOKENS[Role.ADMIN] not in said


async def test_logout_ends_open_pages(coordinator: Shown) -> None:
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(f"http://{coordinator.web}", cookie_jar=jar) as session:
        async with session.post("/api/session", json={"token": TOKENS[Role.READER]}):
            pass
        async with session.ws_connect("/live") as live:
            assert (await live.receive()).type is aiohttp.WSMsgType.TEXT
            async with session.delete("/api/session") as response:
                assert response.status == 200
            while (said := await live.receive()).type is aiohttp.WSMsgType.TEXT:
                pass
            assert said.type is aiohttp.WSMsgType.CLOSE
            assert said.extra == "the session has ended"


def test_session_and_certificate_give_the_greater_role() -> None:
    access = access_of(b'[reader]\ncertificates = ["grafana"]', "roles")
    gate = Gate(access, lambda: "session")
    operator, nobodys = Known(Role.OPERATOR, "olga"), Caller(certificates=("somebody",))
    name = gate.begin(operator, 0.0)
    for shown in (Caller(), nobodys, Caller(certificates=("grafana",))):
        assert gate.known(shown, name, 1.0) == operator
    assert gate.known(Caller(certificates=("grafana",)), None, 1.0).role is Role.READER
    assert gate.known(nobodys, name, SESSION_S).role is Role.NOBODY
    gate.end(name)
    assert gate.known(nobodys, name, 1.0).role is Role.NOBODY


def test_a_session_ends_with_the_token_that_began_it(tmp_path: Path) -> None:
    path, told = tmp_path / "roles.toml", list[str]()
    path.write_text(f'[reader.tokens]\nrita = "{"r" * 32}"\n')
    path.chmod(0o600)
    roles = FileOfRoles(str(path), "a test")
    roles.warn_with(told.append)
    gate = Gate(roles, lambda: "session")
    rita = roles.known(Caller("r" * 32))
    name = gate.begin(rita, 0.0, "r" * 32)
    path.write_text("no TOML")
    assert gate.known(Caller(), name, 1.0) == rita
    assert len(told) == 1
    assert "is no TOML" in told[0]
    path.write_text(f'[reader.tokens]\nrita = "{"s" * 32}"\n')
    assert gate.known(Caller(), name, 1.0).role is Role.NOBODY
    assert roles.known(Caller("r" * 32)).role is Role.NOBODY
    assert roles.known(Caller("s" * 32)) == rita


async def test_other_pages_cannot_ask_in_somebodys_name(coordinator: Shown) -> None:
    headers = {"Authorization": f"Bearer {TOKENS[Role.ADMIN]}", "Origin": "http://evil.example"}
    own = headers | {"Origin": f"http://{coordinator.web}"}
    freeze = {"command": "freeze", "reason": "x"}
    async with aiohttp.ClientSession(f"http://{coordinator.web}") as session:
        async with session.post("/api/command", json=freeze, headers=headers) as response:
            assert response.status == 403
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await session.ws_connect("/live", headers=headers)
        assert caught.value.status == 403
        async with session.ws_connect("/live", headers=own) as live:
            assert "history" in json.loads((await live.receive()).data)
        form = own | {"Content-Type": "text/plain"}
        async with session.post("/api/command", data="{}", headers=form) as response:
            assert response.status == 415


async def test_requests_above_the_limits_are_refused(coordinator: Shown) -> None:
    headers = {"Authorization": f"Bearer {TOKENS[Role.READER]}"}
    async with aiohttp.ClientSession(f"http://{coordinator.web}") as session:
        body = {"token": "x" * BODY_BYTES_MAX}
        async with session.post("/api/session", json=body) as response:
            assert response.status == 413
        async with session.get("/api/me", headers={"X-Much": "x" * 9000}) as response:
            assert response.status == 400
            assert HEADERS.items() <= response.headers.items()
            assert "over 8192 bytes" in (await response.json())["problem"]
        async with session.get("/api/me", params={"q": "x" * 9000}) as response:
            assert response.status in (400, 414)
        opened = [await session.ws_connect("/live", headers=headers) for _ in range(VIEWERS_MAX)]
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await session.ws_connect("/live", headers=headers)
        assert caught.value.status == 503
        await opened[0].send_str("hello")
        while (said := await opened[0].receive()).type is aiohttp.WSMsgType.TEXT:
            pass
        assert said.type is aiohttp.WSMsgType.CLOSE
        for one in opened:
            await one.close()


async def test_wrong_tokens_and_frequent_requests_are_rate_limited(coordinator: Shown) -> None:
    gate = Gate(None, lambda: "")
    assert not any(gate.is_too_often("a", 1.0) for _ in range(ASKED_MAX))
    assert gate.is_too_often("a", 1.0)
    assert not gate.is_too_often("b", 1.0)
    assert not gate.is_too_often("a", 12.0)

    found = []
    async with aiohttp.ClientSession(f"http://{coordinator.web}") as session:
        for _ in range(8):
            async with session.get(
                "/api/me", headers={"Authorization": f"Bearer {WRONG}"}
            ) as response:
                found.append(response.status)
        # Others may have the same address, behind a proxy.
        own = {"Authorization": f"Bearer {TOKENS[Role.READER]}"}
        async with session.get("/api/snapshot", headers=own) as response:
            assert response.status == 200
        async with session.post("/api/session", json={"token": TOKENS[Role.READER]}) as right:
            assert right.status == 200
    assert found[0] == 200  # everybody may ask who they are
    assert found[-1] == 429


def test_a_command_shows_the_token_that_a_file_holds(coordinator: Shown, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKENS[Role.READER] + "\n")
    asked = ["cluster", "status", "--coordinator", coordinator.rpc]
    assert "the caller is unknown" in ripple(*asked).err
    assert ripple(*asked, "--token-file", file).code == 0
    frozen = ripple(
        *("cluster", "freeze", "--reason", "x", "--coordinator", coordinator.rpc),
        *("--token-file", file),
    )
    assert frozen.code == 1
    assert "reader is reader, and may not administer" in frozen.err


def test_a_connection_that_asks_nothing_is_hung_up_on(coordinator: Shown) -> None:
    host, _, port = coordinator.web.partition(":")
    with socket.create_connection((host, int(port))) as silent:
        silent.settimeout(PATIENCE_S)
        silent.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        assert silent.recv(100) == b""


def test_a_name_that_somebody_chose_for_this_machine_is_not_believed() -> None:
    for good in ("localhost", "localhost:9203", "127.0.0.1:1", "[::1]:9203", "127.8.8.8"):
        assert is_this_machine(good)
    for bad in ("evil.example", "evil.example:9203", "10.0.0.1:80", "localhost.evil.example", ""):
        assert not is_this_machine(bad)
