"""Exit 0 if the process of this container answers /health with 200, and 1 if not.

It asks where the process listens: at RIPPLE_HOST, and at RIPPLE_HEALTH_PORT or the default of a
worker, a coordinator or a gateway. Nothing but a socket, since it runs every few seconds.
"""

import os
import socket
import sys

TIMEOUT_S = 2.0
REQUEST = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def answer(host: str, port: int) -> bytes:
    """Return the first line of the answer, or what is wrong."""
    try:
        with socket.create_connection((host, port), TIMEOUT_S) as link:
            link.sendall(REQUEST)
            return link.makefile("rb").readline().strip()
    except OSError as error:
        return f"{host}:{port}: {error}".encode()


def main() -> int:
    """Ask; print what was answered."""
    host = os.environ.get("RIPPLE_HOST", "127.0.0.1")
    if host in ("0.0.0.0", "::"):  # noqa: S104 - everywhere is here, too
        host = "127.0.0.1"
    given = os.environ.get("RIPPLE_HEALTH_PORT")
    for port in (int(given),) if given else (9100, 9201, 9301):
        said = answer(host, port)
        print(said.decode(errors="replace"))
        if said.startswith(b"HTTP/1.1 200 "):
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
