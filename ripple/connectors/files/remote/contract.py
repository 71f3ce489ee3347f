"""The contract of servers of files, and how one is opened."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from ripple.connectors.files.remote.address import is_remote, scheme_of
from ripple.connectors.files.version import local_version

if TYPE_CHECKING:
    from ripple.connectors.files.version import Version

BLOCK_BYTES = 8 << 20
_READ_FROM = ("AWS_", "RIPPLE_S3_", "SSL_CERT_")


class FileServer(Protocol):
    """A store of objects, or the web. Each call has a time-out and bounded retries.

    Raises InputAwayError for a server that may be back soon, InputError for any other refusal, of a
    bucket FileGoneError where there is no such object.
    """

    def version(self, path: str) -> Version:
        """Return the present version of a file."""
        ...

    def read(self, path: str, start: int, length: int) -> tuple[bytes, Version]:
        """Return bytes of a file, with their version; fewer at its end."""
        ...


def version_of(path: str) -> Version:
    """Return the version of a file, of this machine or of a server; raises as ``FileServer``."""
    return server_of(path).version(path) if is_remote(path) else local_version(path)


def server_of(path: str) -> FileServer:
    """Return the server of a file, which keeps its connections for later files.

    A process that changes its credentials, in its environment, gets another one.
    """
    given = sorted(one for one in os.environ.items() if one[0].startswith(_READ_FROM))
    return _opened(scheme_of(path), tuple(given))


@lru_cache(maxsize=2)
def _opened(scheme: str, _environment: tuple[tuple[str, str], ...]) -> FileServer:
    if scheme == "s3":
        # of an extra, and slow to import
        from ripple.connectors.files.remote.s3 import Bucket  # noqa: PLC0415

        return Bucket()
    from ripple.connectors.files.remote.web import Web  # noqa: PLC0415 - of an extra

    return Web()
