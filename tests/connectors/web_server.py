"""A web server over TLS on this machine, which gives parts of files unless told otherwise."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from tests.services.certificate import certified


class WebServer:
    """The files by path, and the requests. ``url`` is its address.

    failures: the number of next requests without an answer. parts: whether it supports Range.
    part_bytes: the longest part. untrue: false headers, sent in place of true ones. user: the
    required ``Authorization``, "" for none.
    """

    def __init__(self, port: int) -> None:
        self.url = f"https://127.0.0.1:{port}"
        self.reset()

    def reset(self) -> None:
        """Serve nothing, and forget all requests."""
        self.files: dict[str, bytes] = {}
        self.etags: dict[str, str] = {}
        self.asked: list[tuple[str, str]] = []
        self.redirects: dict[str, str] = {}
        self.failures = 0
        self.parts = True
        self.part_bytes = 1 << 30
        self.untrue: dict[str, str] = {}
        self.user = ""


@contextmanager
def web_server(folder: Path) -> Iterator[tuple[WebServer, Path]]:
    """Serve; yields the server and its certificate, as a file of authorities."""
    key, certificate = certified(folder)
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(certificate, key)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            _answer(self, served)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.socket = serving.wrap_socket(server.socket, server_side=True)
        served = WebServer(server.server_address[1])
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield served, certificate
        finally:
            server.shutdown()
            thread.join()


def _answer(request: BaseHTTPRequestHandler, served: WebServer) -> None:
    part = request.headers.get("Range", "")
    served.asked.append((request.path, part))
    if served.failures:
        served.failures -= 1
        request.close_connection = True
        return
    if served.user and request.headers.get("Authorization") != served.user:
        _say(request, 401, b"", {})
    elif request.path in served.redirects:
        _say(request, 302, b"", {"Location": served.redirects[request.path]})
    elif request.path not in served.files:
        _say(request, 404, b"", {})
    else:
        data, etag = served.files[request.path], served.etags.get(request.path, '"1"')
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", part) if served.parts else None
        if found is None:
            _say(request, 200, data, {"ETag": etag})
        elif int(found[1]) >= len(data):
            _say(request, 416, b"", {"ETag": etag, "Content-Range": f"bytes */{len(data)}"})
        else:
            body = data[int(found[1]) : int(found[2]) + 1][: served.part_bytes]
            where = f"bytes {found[1]}-{int(found[1]) + len(body) - 1}/{len(data)}"
            _say(request, 206, body, {"ETag": etag, "Content-Range": where, **served.untrue})


def _say(
    request: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str]
) -> None:
    request.send_response(status)
    for name, value in {**headers, "Content-Length": str(len(body))}.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(body)
