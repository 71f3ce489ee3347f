"""Moto's server, one request at a time.

It finds out whether an object is there and writes it in two steps, in threads: of two conditional
puts that race, both could win. A real store lets one of them win.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from moto import server

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Serialized:
    """An application of WSGI, called by one thread at a time."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._lock = threading.Lock()

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        with self._lock:
            return self._application(environ, start_response)


def main() -> None:
    """Serve with the options of the command line, like ``python -m moto.server``."""
    serve = server.run_simple

    def serve_serialized(host: str, port: int, application: Application, **given: object) -> None:
        serve(host, port, Serialized(application), **given)

    server.run_simple = serve_serialized
    server.main()


if __name__ == "__main__":
    main()
