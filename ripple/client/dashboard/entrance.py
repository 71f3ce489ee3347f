"""Access control of HTTP requests, and sessions.

A request is anonymous until the gate identifies its sender; requests that change something are
POST, from the dashboard's own page or with a token.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ripple.client.dashboard.contract import AskedError
from ripple.client.dashboard.gate import is_this_machine
from ripple.client.dashboard.headers import HEADERS
from ripple.client.dashboard.listening import Speaking
from ripple.core.access import Caller, Known, Right, Role
from ripple.core.errors import RippleError
from ripple.core.extras import needed
from ripple.world import live_tls

with needed("dashboard", "the dashboard"):
    from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ripple.client.dashboard.contract import Shown
    from ripple.client.dashboard.gate import Gate
    from ripple.world.ports import Clock

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

COOKIE = "ripple_session"
BODY_S = 10.0
# Paths without access control: without them nobody could log in.
OPEN = ("/", "/explore", "/api/me", "/api/session")


class Entrance:
    """Admits requests, and keeps sessions."""

    def __init__(self, shown: Shown, gate: Gate, clock: Clock, *, is_secured: bool) -> None:
        """Admit users that ``gate`` knows. is_secured: whether requests come over TLS."""
        self._shown = shown
        self._gate = gate
        self._clock = clock
        self._is_secured = is_secured
        own = {"Strict-Transport-Security": "max-age=31536000"} if is_secured else {}
        self.headers = {**HEADERS, "Server": "ripple", **own}

    @property
    def guard(self) -> Any:
        """The middleware before all handlers; it adds the headers to every answer."""

        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            protocol = request.protocol
            try:
                refusal = self._refusal(request)
                if request["known"].role is not Role.NOBODY and isinstance(protocol, Speaking):
                    protocol.settle()
                response = refusal or await handler(request)
            except web.HTTPException as error:
                response = problem(error.status, error.reason)
            except AskedError as error:
                response = problem(400, str(error))
            except RippleError as error:
                response = problem(503, str(error))
            finally:
                if isinstance(protocol, Speaking):
                    protocol.idle()
            if not response.prepared:
                for name, value in self.headers.items():
                    response.headers.setdefault(name, value)
            return response

        return guarded

    def _refusal(self, request: web.Request) -> web.Response | None:
        now_s = self._now_s()
        request["known"] = Known(Role.NOBODY)
        if not self._gate.asks_for_tokens and not is_this_machine(request.host):
            return problem(421, f"{request.host[:80]} is not a name of this machine: use localhost")
        caller = _caller(request)
        known = self._gate.known(caller, request.cookies.get(COOKIE), now_s)
        is_known = known.role is not Role.NOBODY
        # Behind a proxy, an anonymous client may share the address of a known one.
        counted_as = f"{known.role.value} {known.name}" if is_known else request.remote or ""
        if self._gate.is_too_often(counted_as, now_s):
            return problem(429, "too many requests: wait ten seconds")
        is_ours = request.headers.get("Origin") in (None, self._origin(request))
        changes = request.method not in ("GET", "HEAD")
        if not is_ours and (changes or request.path == "/live"):
            return problem(403, "cross-site request: only the dashboard's own page may send it")
        if changes and request.method != "DELETE" and request.content_type != "application/json":
            return problem(415, "the body must be application/json")
        request["known"] = known
        if caller.token is not None and not is_known:
            if self._gate.has_guessed(request.remote or "", now_s):
                return problem(429, "too many wrong tokens: wait ten seconds")
            self._gate.was_wrong(request.remote or "")
        is_open = request.path in OPEN or request.path.startswith("/page/")
        if is_open or known.may(Right.READ):
            return None
        return _unauthorized(known)

    def _origin(self, request: web.Request) -> str:
        return f"http{'s' if self._is_secured else ''}://{request.host}"

    def _now_s(self) -> float:
        return self._clock.monotonic_ns() / 1e9

    def still_reads(self, request: web.Request) -> bool:
        """Return whether the sender may still read: a session may have ended."""
        cookie = request.cookies.get(COOKIE)
        return self._gate.known(_caller(request), cookie, self._now_s()).may(Right.READ)

    async def me(self, request: web.Request) -> web.Response:
        """Answer with the user's name and rights."""
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

    async def log_in(self, request: web.Request) -> web.Response:
        """Begin a session for a token, so that the browser need not store it."""
        now_s, remote = self._now_s(), request.remote or ""
        given = await said_by(request)
        token = given.get("token")
        caller = Caller(token if isinstance(token, str) else None)
        known = self._gate.known(caller, None, now_s)
        if not known.may(Right.READ):
            if self._gate.has_guessed(remote, now_s):
                return problem(429, "too many wrong tokens: wait ten seconds")
            self._gate.was_wrong(remote)
            return problem(401, "unknown token")
        response = web.json_response({"role": known.role.value, "name": known.name})
        if self._gate.asks_for_tokens:
            response.set_cookie(
                COOKIE,
                self._gate.begin(known, now_s, caller.token),
                httponly=True,
                samesite="Strict",
                secure=self._is_secured,
                path="/",
            )
        return response

    async def log_out(self, request: web.Request) -> web.Response:
        """End a session."""
        self._gate.end(request.cookies.get(COOKIE))
        response = web.json_response({})
        response.del_cookie(COOKIE, path="/")
        return response


def _caller(request: web.Request) -> Caller:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    transport = request.transport
    shown = None if transport is None else transport.get_extra_info("peercert")
    return Caller(
        token=token.strip() if scheme.lower() == "bearer" else None,
        certificates=live_tls.names_in(shown or {}),
    )


async def said_by(request: web.Request) -> dict[str, Any]:
    """Return the JSON object in the body. Raises AskedError."""
    try:
        async with asyncio.timeout(BODY_S):
            found = await request.json()
    except TimeoutError:
        raise AskedError(f"the body did not arrive within {BODY_S:g} s") from None
    except (ValueError, RecursionError):
        raise AskedError("the body is not JSON") from None
    if not isinstance(found, dict):
        raise AskedError("the body is not a JSON object")
    return found


def problem(status: int, text: str) -> web.Response:
    """Return an error answer."""
    return web.json_response({"problem": text}, status=status)


def _unauthorized(known: Known) -> web.Response:
    if known.role is Role.NOBODY:
        response = problem(401, "authentication required: log in, or give a token")
        response.headers["WWW-Authenticate"] = 'Bearer realm="ripple"'
        return response
    return problem(403, f"{known.name} is {known.role.value}, and may not read this")
