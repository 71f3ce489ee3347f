"""Requests over HTTP with credentials, which go to the named server alone."""

from __future__ import annotations

import socket
import threading
import urllib.error
import urllib.request
from contextlib import suppress
from http.client import HTTPException
from io import BytesIO
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import ssl
    from http.client import HTTPMessage

WHY_BYTES_MAX = 1 << 16  # of what an error says
_PORTS = {"http": 80, "https": 443}


def ask(
    request: urllib.request.Request,
    timeout_s: float,
    bytes_max: int,
    context: ssl.SSLContext | None = None,
) -> bytes:
    """Return the answer, at most ``bytes_max`` of it, within ``timeout_s`` from now.

    context: how TLS is done. A redirect is followed where it leads to the same scheme, host and
    port; another must not learn the credentials. Raises urllib's HTTPError for a status that is not
    of success, of which such a redirect is one, and OSError.
    """
    deadline = _Deadline(timeout_s)
    https = {} if context is None else {"context": context}
    opener = urllib.request.build_opener(_SameOrigin(), _Http(deadline), _Https(deadline, **https))
    try:
        with opener.open(request, timeout=timeout_s) as answer:
            data: bytes = answer.read(bytes_max)
    except urllib.error.HTTPError as error:
        with error:
            why = BytesIO(error.read(WHY_BYTES_MAX))
        raise urllib.error.HTTPError(error.url, error.code, error.msg, error.headers, why) from None
    except (HTTPException, OSError) as error:
        if deadline.is_over:
            raise TimeoutError(f"no whole answer within {timeout_s:g} s") from error
        if isinstance(error, OSError):
            raise
        raise ConnectionAbortedError(f"no answer of HTTP: {type(error).__name__}") from error
    finally:
        deadline.end()
    if deadline.is_over:
        raise TimeoutError(f"no whole answer within {timeout_s:g} s")
    return data


class _Deadline:
    """Breaks connections off once it is over: each wait for a byte alone would have its own."""

    def __init__(self, within_s: float) -> None:
        self.is_over = False
        self._ways: list[socket.socket] = []
        self._timer = threading.Timer(within_s, self._over)
        self._timer.daemon = True
        self._timer.start()

    def connected(self, *args: Any, **options: Any) -> socket.socket:
        """Return a connection, which ends with the deadline."""
        made = socket.create_connection(*args, **options)
        self._ways.append(made.dup())
        return made

    def end(self) -> None:
        """Cancel the deadline."""
        self._timer.cancel()
        for way in self._ways:
            way.close()

    def _over(self) -> None:
        self.is_over = True
        for way in self._ways:
            with suppress(OSError):  # it has ended
                way.shutdown(socket.SHUT_RDWR)


class _Http(urllib.request.HTTPHandler):
    def __init__(self, deadline: _Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def do_open(self, http_class: Any, req: Any, **options: Any) -> Any:
        return super().do_open(_within(self._deadline, http_class), req, **options)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, deadline: _Deadline, **options: Any) -> None:
        super().__init__(**options)
        self._deadline = deadline

    def do_open(self, http_class: Any, req: Any, **options: Any) -> Any:
        return super().do_open(_within(self._deadline, http_class), req, **options)


def _within(deadline: _Deadline, http_class: Any) -> Any:
    def made(*args: Any, **options: Any) -> Any:
        connection = http_class(*args, **options)
        connection._create_connection = deadline.connected
        return connection

    return made


class _SameOrigin(urllib.request.HTTPRedirectHandler):
    def redirect_request(  # noqa: PLR0917 - urllib's
        self,
        req: urllib.request.Request,
        fp: Any,
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        there = origin_of(newurl)
        if there != origin_of(req.full_url):
            fp.close()
            why = f"it redirects to {there}, which was not asked: name that one, if it is right"
            raise urllib.error.HTTPError(req.full_url, code, why, headers, None)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def origin_of(url: str) -> str:
    """Return the scheme, host and port of an address: nothing of it is secret."""
    parts = urlsplit(url)
    try:
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        port = 0
    return f"{parts.scheme}://{parts.hostname or ''}:{port}"
