"""Addresses of remote files."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from ripple.core.errors import InputError

_REMOTE = re.compile(r"(s3|https)://", re.IGNORECASE)


def is_remote(path: str) -> bool:
    """Return whether a path is the address of a file of a server."""
    return _REMOTE.match(path) is not None


def scheme_of(path: str) -> str:
    """Return ``s3`` or ``https``."""
    return path.partition(":")[0].lower()


def checked(path: str) -> str:
    """Return an address. Raises InputError for one without a host, or with a secret in it.

    Addresses are in logs and reports, so that no error quotes one with a user or a query.
    """
    scheme = scheme_of(path)
    form = "s3://BUCKET/PATH" if scheme == "s3" else "https://HOST[:PORT]/PATH"
    try:
        parts = urlsplit(path)
        _ = parts.port if scheme == "https" else None  # raises for one that is none
    except ValueError:
        raise InputError(f"a source at {scheme}: is not {form}") from None
    if "@" in parts.netloc:
        places = "the AWS chain, as AWS_ACCESS_KEY_ID" if scheme == "s3" else "~/.netrc"
        raise InputError(
            f"a source at {scheme}://...@... holds a user: give {form}, and credentials by {places}"
        )
    if scheme == "https" and (parts.query or parts.fragment):
        raise InputError(
            f"a source at https://{parts.netloc}{parts.path} has a query, which may be a secret "
            "and would be in logs: give credentials by ~/.netrc, or pipe the file, as curl URL | "
            "ripple run ... --source - does"
        )
    if not parts.netloc or parts.path in ("", "/"):
        raise InputError(f"{path!r} is not {form}")
    return path
