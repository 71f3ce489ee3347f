"""Files of web servers over TLS, by range requests."""

from __future__ import annotations

import base64
import netrc
import re
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
_RANGE = re.compile(r"bytes (?:([0-9]{1,18})-([0-9]{1,18})|\*)/([0-9]{1,18})")
_REDIRECTS = {301, 302, 303, 307, 308}


class Web:
    """All web servers over TLS; see FileServer.

    The CA certificates are the system's, or of ``SSL_CERT_FILE``. A user and a password of
    ``~/.netrc`` go to their own host, and not to the targets of its redirects.
    """

    def __init__(self) -> None:
        self._pool = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=CONNECT_S, read=READ_S),
            retries=False,  # they are ours
            ssl_context=ssl.create_default_context(),
        )

    def version(self, path: str) -> Version:
        """Return the present version of a file; see FileServer."""
        return self.read(path, 0, 1)[1]

    def read(self, path: str, start: int, length: int) -> tuple[bytes, Version]:
        """Return bytes of a file; see FileServer."""
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
                size, expected = _part(answer.headers, path, start, length)
                data = _body(answer, expected, path)
                answer.release_conn()  # all was read, so the connection is good for the next part
                return data, Version(size, stamp)
            if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                return b"", Version(_range(answer.headers, path)[2], stamp)
            if status == HTTPStatus.OK:
                whole = answer.read(BLOCK_BYTES + 1, decode_content=not _is_compressed(path))
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
            try:
                at = urljoin(at, answer.headers.get("Location", ""))
                scheme = urlsplit(at).scheme
            except ValueError as error:
                raise InputError(f"cannot read {path}: its server redirects to nowhere") from error
            if scheme != "https":
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
    data = answer.read(expected, decode_content=False)
    if len(data) < expected:
        raise InputAwayError(f"cannot read {path}: {len(data)} of {expected} bytes arrived")
    return data


def _stamp(headers: urllib3.HTTPHeaderDict) -> str:
    return headers.get("ETag") or headers.get("Last-Modified") or ""


def _part(headers: urllib3.HTTPHeaderDict, path: str, start: int, length: int) -> tuple[int, int]:
    """Return the length of a file, and of the part that comes: servers may give less than asked."""
    first, end, size = _range(headers, path)
    if first != start or not first < end <= min(first + length, size):
        raise InputError(
            f"cannot read {path}: its server gives bytes {first} to {end - 1} of {size} where it "
            f"is asked for {start} to {start + length - 1}: download it, and read the file"
        )
    encoding = headers.get("Content-Encoding", "identity")
    if encoding != "identity" and not _is_compressed(path):
        raise InputError(
            f"cannot read {path}: its server gives parts of it compressed ({encoding[:20]}), which "
            "it is not asked for: download it, and read the file"
        )
    return size, end - first


def _range(headers: urllib3.HTTPHeaderDict, path: str) -> tuple[int, int, int]:
    """Return a part's start and end offset, 0 and 0 for none, and the length of the file."""
    found = _RANGE.fullmatch(headers.get("Content-Range", ""))
    if found is None:
        raise InputError(f"cannot read {path}: its server does not say how long it is")
    first, last, size = found.groups()
    return (0, 0, int(size)) if first is None else (int(first), int(last) + 1, int(size))


def _is_compressed(path: str) -> bool:
    """Return whether the file itself is compressed, and its bytes are to stay unchanged."""
    return path.endswith((".gz", ".zst"))


def _kind(error: Exception) -> str:
    return type(error).__name__


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:300]
