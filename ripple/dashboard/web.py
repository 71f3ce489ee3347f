"""The dashboard over HTTP: pages, the websocket, and what can be asked.

Whoever asks is nobody until the gate knows them. Every answer forbids the browser to load anything
from elsewhere; what can change something is asked for by POST, from our own page or with a token.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from ripple.access import Caller, Known, Right, Role
from ripple.dashboard.assets import HOW, PAGE, VENDOR, missing
from ripple.dashboard.contract import AskedError
from ripple.dashboard.gate import is_this_machine
from ripple.dashboard.ticks import Ticks
from ripple.errors import RippleError
from ripple.extras import needed
from ripple.world import live_tls
from ripple.world.addresses import is_loopback, joined, parts

with needed("dashboard", "the dashboard"):
    from aiohttp import WSMsgType, web

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from ripple.dashboard.contract import Shown
    from ripple.dashboard.gate import Gate
    from ripple.world.ports import Clock
    from ripple.world.tls import Tls

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

COOKIE = "ripple_session"
BODY_BYTES_MAX = 64 << 10
HEADER_BYTES_MAX = 8 << 10
CONNECTIONS_MAX = 256
VIEWERS_MAX = 64
# A connection that has asked nothing for so long is hung up on, and so is an idle one.
FIRST_REQUEST_S = 10.0
IDLE_S = 30.0
PING_S = 20.0
FILE_BYTES_MAX = 4 << 20

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}
# What anybody may have: without it nobody could say who they are.
OPEN = ("/", "/api/me", "/api/session")


class Dashboard:
    """One dashboard; ``start`` shows it at an address."""

    def __init__(
        self,
        shown: Shown,
        gate: Gate,
        clock: Clock,
        *,
        tls: Tls | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Show something. say: is told who has commanded what."""
        self.address = ""
        self.ticks = Ticks(shown, clock)
        self._shown = shown
        self._gate = gate
        self._clock = clock
        self._tls = tls
        self._say = say
        self._files = _files()
        self._sockets: WeakSet[web.WebSocketResponse] = WeakSet()
        self._viewers = 0
        self._loopback = True
        self._runner: web.AppRunner | None = None
        self._server: asyncio.Server | None = None

    @property
    def routes(self) -> list[tuple[str, str, Handler]]:
        """All that can be asked: methods, paths, and what answers."""
        return [
            ("GET", "/", self._index),
            ("GET", "/page/{name:.+}", self._file),
            ("GET", "/live", self._live),
            ("GET", "/api/me", self._me),
            ("POST", "/api/session", self._log_in),
            ("DELETE", "/api/session", self._log_out),
            ("GET", "/api/snapshot", self._snapshot),
            ("POST", "/api/command", self._command),
            ("GET", "/api/{what:[a-z]+}", self._ask),
        ]

    async def start(self, address: str) -> None:
        """Listen. Raises OSError, of which TlsError names a file that does not fit."""
        host, port = parts(address)
        self._loopback = is_loopback(address)
        secured: ssl.SSLContext | None = None
        if self._tls is not None:
            secured = live_tls.context_to_show(self._tls, lambda error: self._say(str(error)))
        app = web.Application(client_max_size=BODY_BYTES_MAX, middlewares=[self._guarded])
        app.add_routes([web.route(*one) for one in self.routes])
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handle_signals=False,
            keepalive_timeout=IDLE_S,
            max_line_size=HEADER_BYTES_MAX,
            max_field_size=HEADER_BYTES_MAX,
            shutdown_timeout=1.0,
        )
        await self._runner.setup()
        made = self._runner.server
        assert made is not None
        loop = asyncio.get_running_loop()

        def connected() -> asyncio.Protocol:
            if len(made.connections) >= CONNECTIONS_MAX:
                return _Refusing()
            handler = made()
            loop.call_later(FIRST_REQUEST_S, self._hang_up_on_silent, handler)
            return handler

        self._server = await loop.create_server(
            connected,
            host,
            port,
            ssl=secured,
            ssl_handshake_timeout=None if secured is None else live_tls.HANDSHAKE_SECONDS_MAX,
        )
        port = self._server.sockets[0].getsockname()[1]
        self.address = f"http{'s' if secured else ''}://{joined(host, port)}/"

    async def close(self) -> None:
        """Show nothing any more."""
        if self._server is not None:
            self._server.close()
        for socket in list(self._sockets):
            await socket.close(code=1001, message=b"the dashboard ends")
        await self.ticks.close()
        if self._runner is not None:
            await self._runner.cleanup()

    # Who asks.

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Let a request in or not; every answer has the headers."""
        try:
            refusal = self._refusal(request)
            response = refusal or await handler(request)
        except web.HTTPException as error:
            response = _problem(error.status, error.reason)
        except AskedError as error:
            response = _problem(400, str(error))
        except RippleError as error:
            response = _problem(503, str(error))
        if not response.prepared:
            self._add_headers(response)
        return response

    def _add_headers(self, response: web.StreamResponse) -> None:
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        response.headers["Server"] = "ripple"
        if self._tls is not None:
            response.headers["Strict-Transport-Security"] = "max-age=31536000"

    def _refusal(self, request: web.Request) -> web.Response | None:
        now_s = self._now_s()
        request["known"] = Known(Role.NOBODY)
        if not self._gate.asks_for_tokens and not is_this_machine(request.host):
            return _problem(421, f"{request.host[:80]} is no name of this machine: ask localhost")
        if self._gate.is_too_often(request.remote or "", now_s):
            return _problem(429, "too many requests: wait ten seconds")
        is_ours = request.headers.get("Origin") in (None, self._origin(request))
        changes = request.method not in ("GET", "HEAD")
        if not is_ours and (changes or request.path == "/live"):
            return _problem(403, "another page asks for this: only our own may")
        if changes and request.method != "DELETE" and request.content_type != "application/json":
            return _problem(415, "what is posted here is application/json")
        caller = _caller(request)
        if caller.token is not None and self._gate.has_guessed(request.remote or "", now_s):
            return _problem(429, "too many wrong tokens: wait ten seconds")
        known = self._gate.known(caller, request.cookies.get(COOKIE), now_s)
        request["known"] = known
        if caller.token is not None and known.role is Role.NOBODY:
            self._gate.was_wrong(request.remote or "")
        is_open = request.path in OPEN or request.path.startswith("/page/")
        if is_open or known.may(Right.READ):
            return None
        return _unauthorized(known)

    def _origin(self, request: web.Request) -> str:
        return f"http{'s' if self._tls is not None else ''}://{request.host}"

    def _now_s(self) -> float:
        return self._clock.monotonic_ns() / 1e9

    def _hang_up_on_silent(self, handler: Any) -> None:
        """End a connection that has asked for nothing: it may be one of many."""
        transport = getattr(handler, "transport", None)
        is_idle = getattr(handler, "_current_request", None) is None
        if transport is not None and is_idle and not getattr(handler, "_request_count", 1):
            transport.abort()

    # What is asked.

    async def _index(self, _: web.Request) -> web.Response:
        absent = missing()
        if absent:
            text = (
                f"The dashboard's files are not here ({', '.join(absent)}).\n\n"
                f"In a clone of the repository, fetch them: {HOW}\n"
            )
            return web.Response(text=text, status=503)
        response = self._files["index.html"].response()
        response.headers["Cache-Control"] = "no-store"
        return response

    async def _file(self, request: web.Request) -> web.Response:
        file = self._files.get(request.match_info["name"])
        if file is None:
            return _problem(404, "there is no such file")
        if request.headers.get("If-None-Match") == file.tag:
            return web.Response(status=304, headers={"Cache-Control": "no-cache"})
        return file.response()

    async def _me(self, request: web.Request) -> web.Response:
        known: Known = request["known"]
        rights = [right.value for right in Right if known.may(right)]
        me = {"role": known.role.value, "name": known.name, "rights": rights}
        has_session = COOKIE in request.cookies and known.role is not Role.NOBODY
        return web.json_response(
            me
            | {
                "asks_for_tokens": self._gate.asks_for_tokens,
                "has_session": has_session,
                "title": self._shown.name if known.may(Right.READ) else "Ripple",
            }
        )

    async def _log_in(self, request: web.Request) -> web.Response:
        """Begin a session for a token, so that it need not lie in the browser."""
        now_s, remote = self._now_s(), request.remote or ""
        if self._gate.has_guessed(remote, now_s):
            return _problem(429, "too many wrong tokens: wait ten seconds")
        given = await _json(request)
        token = given.get("token")
        caller = Caller(token if isinstance(token, str) else None)
        known = self._gate.known(caller, None, now_s)
        if not known.may(Right.READ):
            self._gate.was_wrong(remote)
            return _problem(401, "nobody has this token")
        response = web.json_response({"role": known.role.value, "name": known.name})
        if self._gate.asks_for_tokens:
            response.set_cookie(
                COOKIE,
                self._gate.begin(known, now_s),
                httponly=True,
                samesite="Strict",
                secure=self._tls is not None,
                path="/",
            )
        return response

    async def _log_out(self, request: web.Request) -> web.Response:
        self._gate.end(request.cookies.get(COOKIE))
        response = web.json_response({})
        response.del_cookie(COOKIE, path="/")
        return response

    async def _snapshot(self, _: web.Request) -> web.Response:
        async with aclosing(self.ticks.watch()) as snapshots:
            async for one in snapshots:
                return web.Response(body=one, content_type="application/json")
        return _problem(503, "the dashboard ends")

    async def _ask(self, request: web.Request) -> web.Response:
        answer = await self._shown.answer(request.match_info["what"], request.query)
        return web.json_response(answer)

    async def _command(self, request: web.Request) -> web.Response:
        known: Known = request["known"]
        command = await _json(request)
        if not known.may(self._shown.needs(command)):
            return _problem(403, f"{known.name or 'nobody'} is {known.role.value}, and may not")
        done = await self._shown.command(command, known.name)
        self._say(f"dashboard: {known.name} ({known.role.value}) has commanded: {done['done']}")
        return web.json_response(done)

    async def _live(self, request: web.Request) -> web.StreamResponse:
        if self._viewers >= VIEWERS_MAX:
            return _problem(503, f"{VIEWERS_MAX} look already: try again later")
        socket = web.WebSocketResponse(heartbeat=PING_S, max_msg_size=4 << 10, compress=False)
        self._add_headers(socket)
        self._viewers += 1
        self._sockets.add(socket)
        try:
            await socket.prepare(request)
            sending = asyncio.ensure_future(self._send(socket))
            try:
                async for message in socket:  # nothing is said to us but goodbye
                    if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                        await socket.close(code=1008, message=b"nothing is expected here")
            finally:
                sending.cancel()
                with suppress(asyncio.CancelledError):
                    await sending
        finally:
            self._viewers -= 1
        return socket

    async def _send(self, socket: web.WebSocketResponse) -> None:
        with suppress(ConnectionError, RuntimeError):
            await socket.send_str(json.dumps({"history": self.ticks.history}))
            async with aclosing(self.ticks.watch()) as snapshots:
                async for one in snapshots:
                    await socket.send_str(one.decode())


class _File:
    """A file of the page."""

    def __init__(self, path: Path, body: bytes) -> None:
        from hashlib import sha256  # noqa: PLC0415

        self._body = body
        self._type = TYPES[path.suffix]
        self.tag = f'"{sha256(body).hexdigest()[:16]}"'

    def response(self) -> web.Response:
        return web.Response(
            body=self._body,
            content_type=self._type,
            charset="utf-8",
            headers={"ETag": self.tag, "Cache-Control": "no-cache"},
        )


class _Refusing(asyncio.Protocol):
    """Of a connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


def _files() -> dict[str, _File]:
    """Return the files of the page, by the names under which they are asked for."""
    found = {}
    for folder, prefix in ((PAGE, ""), (VENDOR, "vendor/")):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.suffix in TYPES:
                name = prefix + path.relative_to(folder).as_posix()
                found[name] = _File(path, path.read_bytes())
    return found


def _caller(request: web.Request) -> Caller:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    transport = request.transport
    shown = None if transport is None else transport.get_extra_info("peercert")
    return Caller(
        token=token.strip() if scheme.lower() == "bearer" else None,
        certificates=live_tls.names_in(shown or {}),
    )


async def _json(request: web.Request) -> dict[str, Any]:
    try:
        found = await request.json()
    except (ValueError, RecursionError):
        raise AskedError("this is no JSON") from None
    if not isinstance(found, dict):
        raise AskedError("this is no JSON object")
    return found


def _problem(status: int, text: str) -> web.Response:
    return web.json_response({"problem": text}, status=status)


def _unauthorized(known: Known) -> web.Response:
    if known.role is Role.NOBODY:
        response = _problem(401, "who asks? Log in, or give a token")
        response.headers["WWW-Authenticate"] = 'Bearer realm="ripple"'
        return response
    return _problem(403, f"{known.name} is {known.role.value}, and may not read this")
