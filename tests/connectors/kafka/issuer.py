"""An issuer of tokens."""

from __future__ import annotations

import http.server
import json
from collections.abc import Callable
from urllib.parse import parse_qs


class Issuer(http.server.ThreadingHTTPServer):
    """Gives tokens, by default with a number, to a client that it knows."""

    def __init__(self, token: Callable[[], str] | None = None, good_s: int = 100) -> None:
        super().__init__(("127.0.0.1", 0), _Asked)
        self.token = token or (lambda: f"token-{len(self.asked)}")
        self.good_s = good_s
        self.asked: list[dict[str, list[str]]] = []
        self.answer: object = None
        self.url = f"http://127.0.0.1:{self.server_address[1]}/token"


class _Asked(http.server.BaseHTTPRequestHandler):
    server: Issuer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.asked.append(parse_qs(body))
        if self.headers["Authorization"] != "Basic aWQ6czNjcmV0JTJG":  # id:s3cret%2F
            self.send_error(401)
            return
        found = self.server.answer or {
            "access_token": self.server.token(),
            "expires_in": self.server.good_s,
        }
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(found).encode())

    def log_message(self, *_: object) -> None:
        pass
