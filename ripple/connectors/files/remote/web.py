"""Files of web servers over TLS, which give parts of them."""

from __future__ import annotations

import base64
import netrc
import ssl
from http import HTTPStatus
from urllib.parse import urljoin, urlsplit

from ripple.connectors.files.remote.address import checked
from ripple.connectors.files.remote.attempts import CONNECT_S, READ_S, attempted
from ripple.connectors.files.remote.contract import BLOCK_BYTES
from ripple.connectors.files.version import Version
from ripple.core.errors import InputAwayError, InputError
from ripple.core.extras import needed

with needed("https", "a source at https"):
    import urllib3
    from urllib3.exceptions import HTTPError, SSLError

REDIRECTS_MAX = 5
_FOR_NOW = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS}
_FAILED = 500
_REDIRECTS = {301, 302, 303, 307, 308}


class Web:
    """All web servers over TLS; see Place.

    Certificates are checked against those of the system, or of ``SSL_CERT_FILE``. A user and a
    password of ``~/.netrc`` go to the host that they are for, and not where it redirects to.
    """

    def __init__(self) -> None:
        self._pool = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=CONNECT_S, read=READ_S),
            retries=False,  # they are ours
            ssl_context=ssl.create_default_context(),
        )

    def version(self, path: str) -> Version:
        """Return what is there now; see Place."""
        return self.read(path, 0, 1)[1]

    def read(self, path: str, start: int, length: int) -> tuple[bytes, Version]:
        """Return bytes of a file; see Place."""
        checked(path)
        return attempted(lambda: self._read(path, start, length))

    def _read(self, path: str, start: int, length: int) -> tuple[bytes, Version]:
        try:
            return self._answered(path, start, length)
        except SSLError as error:
            raise InputError(f"cannot read {path}: {_first_line(error)}") from error
        except HTTPError as error:
            raise InputAwayError(f"cannot read {path}: no answer ({_kind(error)})") from error

    def _answered(self, path: str, start: int, length: int) -> tuple[bytes, Version]:
        answer = self._answer(path, f"bytes={start}-{start + length - 1}")
        try:
            status, stamp = answer.status, _stamp(answer.headers)
            if status == HTTPStatus.PARTIAL_CONTENT:
                size = _size(answer.headers, path)
                data = _body(answer, max(min(length, size - start), 0), path)
                answer.release_conn()  # all was read, so the connection is good for the next part
                return data, Version(size, stamp)
            if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                return b"", Version(_size(answer.headers, path), stamp)
            if status == HTTPStatus.OK:
                whole = answer.read(BLOCK_BYTES + 1)
                if len(whole) > BLOCK_BYTES:
                    raise InputError(
                        f"cannot read {path}: its server gives no parts of files (Range), so that "
                        "reading could not resume: download it, and read the file"
                    )
                return whole[start : start + length], Version(len(whole), stamp)
        finally:
            answer.close()
        if status in _FOR_NOW or status >= _FAILED:
            raise InputAwayError(f"cannot read {path}: the server answers {status}")
        way_out = ": check the name"
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            way_out = ": give a user and a password for its host in ~/.netrc"
        raise InputError(f"cannot read {path}: the server answers {status}{way_out}")

    def _answer(self, path: str, part: str) -> urllib3.BaseHTTPResponse:
        at, host = path, urlsplit(path).netloc
        for _ in range(REDIRECTS_MAX):
            headers = {"Range": part, "Accept-Encoding": "identity"}
            if urlsplit(at).netloc == host:
                headers |= _credentials(path)
            answer = self._pool.request(
                "GET", at, headers=headers, redirect=False, preload_content=False
            )
            if answer.status not in _REDIRECTS:
                return answer
            answer.close()
            at = urljoin(at, answer.headers.get("Location", ""))
            if urlsplit(at).scheme != "https":
                raise InputError(f"cannot read {path}: its server redirects to one without TLS")
        raise InputError(f"cannot read {path}: redirected more than {REDIRECTS_MAX} times")


def _credentials(path: str) -> dict[str, str]:
    host = urlsplit(path).hostname or ""
    try:
        found = netrc.netrc().authenticators(host)
    except FileNotFoundError:
        return {}
    except (netrc.NetrcParseError, OSError) as error:
        raise InputError(f"cannot read ~/.netrc for {host}: {type(error).__name__}") from None
    if found is None:
        return {}
    user, _, password = found
    joined = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {joined}"}


def _body(answer: urllib3.BaseHTTPResponse, expected: int, path: str) -> bytes:
    data = answer.read(expected)
    if len(data) < expected:
        raise InputAwayError(f"cannot read {path}: {len(data)} of {expected} bytes arrived")
    return data


def _stamp(headers: urllib3.HTTPHeaderDict) -> str:
    return headers.get("ETag") or headers.get("Last-Modified") or ""


def _size(headers: urllib3.HTTPHeaderDict, path: str) -> int:
    told = headers.get("Content-Range", "").rpartition("/")[2]
    if not (told.isascii() and told.isdecimal()):
        raise InputError(f"cannot read {path}: its server does not say how long it is")
    return int(told)


def _kind(error: Exception) -> str:
    return type(error).__name__


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:300]
