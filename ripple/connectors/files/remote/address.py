"""Addresses of remote files."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from glob import has_magic
from itertools import takewhile
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ripple.connectors.files.names import HIDDEN
from ripple.core.errors import InputError, OutputError

if TYPE_CHECKING:
    from collections.abc import Sequence

_REMOTE = re.compile(r"(s3|https)://", re.IGNORECASE)
_USER = re.compile(r"//[^/?#]*@")


def is_remote(path: str) -> bool:
    """Return whether a path is the address of a file of a server."""
    return _REMOTE.match(path) is not None


def without_secrets(text: str) -> str:
    """Return a URI for errors: one of a server without its user and its query."""
    if "://" not in text:
        return text
    return _USER.sub("//...@", re.split("[?#]", text, maxsplit=1)[0], count=1)


def scheme_of(path: str) -> str:
    """Return ``s3`` or ``https``."""
    return path.partition(":")[0].lower()


def canonical(path: str) -> str:
    """Return the one spelling of an address, for comparisons: without options and last slashes."""
    scheme, _, rest = path.partition("?")[0].partition(":")
    return f"{scheme.lower()}:{rest}".rstrip("/")


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


def check_written(path: str) -> None:
    """Raise OutputError unless a path is the address of an object that can be written."""
    if scheme_of(path) != "s3":
        raise OutputError(
            f"cannot write {without_secrets(path)}: files of web servers are read alone; write "
            "s3://BUCKET/PATH, or a file, and upload it"
        )
    try:
        checked(path)
    except InputError as error:
        raise OutputError(str(error).replace("a source at", "an output at")) from None


def may_match(text: str, path: str) -> bool:
    """Return whether a source at ``s3:`` and a text may read the object or folder at ``path``."""
    plain, pattern = pattern_of(text.lstrip("/"))
    names = path.partition("://")[2].split("/")
    below = names[: len(plain)] == plain and is_remote(path)
    return below and matches(names[len(plain) :], pattern)


def pattern_of(key: str) -> tuple[list[str], list[str]]:
    """Return the folders before the first pattern of a key, and the pattern: all below a folder."""
    parts = key.rstrip("/").split("/")
    plain = list(takewhile(lambda part: not has_magic(part), parts))
    pattern = parts[len(plain) :] or ["**"]
    return plain, [*pattern, "*"] if pattern[-1] == "**" else pattern


def matches(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return whether folders and a name are of a pattern; ``**`` stands for any folders."""
    if not pattern or not names:
        return not pattern and not names
    first, rest = pattern[0], pattern[1:]
    if first == "**" and matches(names, rest):
        return True
    if names[0].startswith(HIDDEN):
        return False
    if first == "**":
        return len(names) > 1 and matches(names[1:], pattern)
    return fnmatchcase(names[0], first) and matches(names[1:], rest)
