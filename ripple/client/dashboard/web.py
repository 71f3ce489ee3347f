"""The dashboard's HTTP service: routes and handlers."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from ripple.client.dashboard.assets import HOW, missing
from ripple.client.dashboard.entrance import Entrance, problem, said_by
from ripple.client.dashboard.files import files
from ripple.client.dashboard.headers import EXPLORE_HEADERS
from ripple.client.dashboard.listening import Listening
from ripple.client.dashboard.ticks import Ticks
from ripple.client.dashboard.viewers import VIEWERS_MAX, Viewers
from ripple.core.extras import needed

with needed("dashboard", "the dashboard"):
    from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.client.dashboard.contract import Shown
    from ripple.client.dashboard.entrance import Handler
    from ripple.client.dashboard.files import File
    from ripple.client.dashboard.gate import Gate
    from ripple.core.access import Known
    from ripple.world.ports import Clock
    from ripple.world.tls import Tls

BODY_BYTES_MAX = 64 << 10


class Dashboard:
    """A dashboard; ``start`` serves it at an address."""

    def __init__(
        self,
        shown: Shown,
        gate: Gate,
        clock: Clock,
        *,
        tls: Tls | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Create the service. say: receives a line for each command."""
        self.address = ""
        self.ticks = Ticks(shown, clock)
        self._shown = shown
        self._tls = tls
        self._say = say
        self._files_had = files()
        self._has_all = not missing()
        self._entrance = Entrance(shown, gate, clock, is_secured=tls is not None)
        self._viewers = Viewers(self.ticks, self._entrance.headers)
        self._listening: Listening | None = None

    @property
    def routes(self) -> list[tuple[str, str, Handler]]:
        """The routes: methods, paths, handlers."""
        return [
            ("GET", "/", self._index),
            ("GET", "/explore", self._explore),
            ("GET", "/page/{name:.+}", self._file),
            ("GET", "/live", self._live),
            ("GET", "/api/me", self._entrance.me),
            ("POST", "/api/session", self._entrance.log_in),
            ("DELETE", "/api/session", self._entrance.log_out),
            ("GET", "/api/snapshot", self._snapshot),
            ("POST", "/api/command", self._command),
            ("POST", "/api/query", self._query),
            ("GET", "/api/rows", self._rows),
            ("GET", "/api/{what:[a-z]+}", self._ask),
        ]

    async def start(self, address: str) -> None:
        """Start listening. Raises OSError; TlsError names an invalid file."""
        app = web.Application(client_max_size=BODY_BYTES_MAX, middlewares=[self._entrance.guard])
        app.add_routes([web.route(*one) for one in self.routes])
        self._listening = Listening(app, self._tls, self._say, self._entrance.headers)
        self.address = await self._listening.start(address)

    async def close(self) -> None:
        """Stop."""
        if self._listening is not None:
            self._listening.refuse()
        await self._viewers.close()
        await self.ticks.close()
        if self._listening is not None:
            await self._listening.close()

    @property
    def _files(self) -> dict[str, File]:
        """The files of the page; third-party ones may be fetched meanwhile."""
        if not self._has_all and not missing():
            self._files_had, self._has_all = files(), True
        return self._files_had

    async def _index(self, _: web.Request) -> web.Response:
        absent = missing()
        if absent:
            text = (
                f"The dashboard's files are not here ({', '.join(absent)}).\n\n"
                f"In a clone of the repository, fetch them: {HOW}\n"
                "Then load this page again: nothing needs to be restarted.\n"
            )
            return web.Response(text=text, status=503)
        return _page(self._files["index.html"])

    async def _explore(self, _: web.Request) -> web.Response:
        response = _page(self._files["explore.html"])
        response.headers.update(EXPLORE_HEADERS)
        return response

    async def _file(self, request: web.Request) -> web.Response:
        file = self._files.get(request.match_info["name"])
        if file is None:
            return problem(404, "there is no such file")
        if request.headers.get("If-None-Match") == file.tag:
            return web.Response(status=304, headers={"Cache-Control": "no-cache"})
        response = _page(file)
        response.headers["Cache-Control"] = "no-cache"
        return response

    async def _snapshot(self, _: web.Request) -> web.Response:
        async with aclosing(self.ticks.watch()) as snapshots:
            async for one in snapshots:
                return web.Response(body=one, content_type="application/json")
        return problem(503, "the dashboard ends")

    async def _ask(self, request: web.Request) -> web.Response:
        answer = await self._shown.answer(request.match_info["what"], request.query)
        return web.json_response(answer)

    async def _rows(self, request: web.Request) -> web.Response:
        version, body = await self._shown.rows(request.query)
        if request.headers.get("If-None-Match") == version:
            return web.Response(status=304, headers={"ETag": version})
        headers = {"ETag": version, "Cache-Control": "no-cache"}
        kind = "application/vnd.apache.arrow.stream"
        return web.Response(body=body, content_type=kind, headers=headers)

    async def _query(self, request: web.Request) -> web.Response:
        given = await said_by(request)
        sql = given.get("sql")
        if not isinstance(sql, str) or not sql.strip():
            return problem(400, "sql is not a text")
        return web.json_response(await self._shown.query(sql))

    async def _command(self, request: web.Request) -> web.Response:
        known: Known = request["known"]
        command = await said_by(request)
        if not known.may(self._shown.needs(command)):
            return problem(403, f"{known.name or 'the user'} is {known.role.value}, and may not")
        done = await self._shown.command(command, known.name)
        self._say(f"dashboard: {known.name} ({known.role.value}) has commanded: {done['done']}")
        return web.json_response(done)

    async def _live(self, request: web.Request) -> web.StreamResponse:
        if self._viewers.is_full:
            return problem(503, f"{VIEWERS_MAX} viewers are connected: try again later")
        return await self._viewers.show(request, lambda: self._entrance.still_reads(request))


def _page(file: File) -> web.Response:
    return web.Response(
        body=file.body,
        content_type=file.type,
        charset=None if file.type == "application/wasm" else "utf-8",
        headers={"ETag": file.tag, "Cache-Control": "no-store"},
    )
