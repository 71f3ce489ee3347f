"""Requests over HTTP that show who asks: what is shown goes to the server that was named alone."""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import ssl
    from http.client import HTTPMessage, HTTPResponse

_PORTS = {"http": 80, "https": 443}


def ask(
    request: urllib.request.Request, timeout_s: float, context: ssl.SSLContext | None = None
) -> HTTPResponse:
    """Return the answer, to be read and closed.

    context: how TLS is done. A redirect is followed where it leads to the same scheme, host and
    port; another must not learn what was shown. Raises urllib's HTTPError for a status that is not
    of success, of which such a redirect is one, and OSError.
    """
    handlers: list[urllib.request.BaseHandler] = [_SameOrigin()]
    if context is not None:
        handlers.append(urllib.request.HTTPSHandler(context=context))
    opener = urllib.request.build_opener(*handlers)
    answer: HTTPResponse = opener.open(request, timeout=timeout_s)
    return answer


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
