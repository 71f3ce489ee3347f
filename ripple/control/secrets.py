"""Secrets that logs must not show: those of the environment, and passwords in addresses."""

from __future__ import annotations

import os
import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HIDDEN = "***"
LENGTH_MIN = 6  # a shorter one would hide ordinary words
_NAMES = re.compile(
    r"SECRET|PASSWORD|PASSPHRASE|PASSWD|TOKEN|CREDENTIAL|API_?KEY|AUTHORIZATION|HEADERS"
    r"|(ACCOUNT|STORAGE|SAS)_KEY"
)
_NO_SECRET = re.compile(r"_(FILE|DIR|PATH)$")  # possible positions
# A user name begins after a character outside it: a search from the middle of each long word would
# take the square of its length.
_IN_ADDRESSES = (
    re.compile(r"(://[^/@\s:]*:)[^/@\s]+(?=@)"),
    re.compile(r"(://[^/@\s:\[]*:)(?!\d+[/?,])[^@\s'\"]{1,200}(?=@)"),  # with a slash in it
    re.compile(r"((?<![^/@\s:'\"])[^/@\s:'\"]+:)[^/@\s:'\"]+(?=@[^/@\s:'\"]+:\d)"),  # of a broker
    re.compile(  # after the scheme of a server, or another host
        r"((?:(?<![\w.+-])(?!(?:csv|jsonl|parquet|log|delta|through):)[A-Za-z][\w.+-]*:"
        r"|@[^/@\s'\"]*,)[^/@\s:'\",]+:)[^/@\s:'\",]+(?=@)"
    ),
    # A token of NATS stands alone before a host; of several hosts the last one is shown.
    re.compile(r"(\bnats://)(?:[^/\s:@]+@[^/\s:@,]+(?::\d+)?,)*[^/\s:@]+(?=@)"),
    re.compile(
        r"([?&](?:[\w.-]*(?:secret|passw(?:or)?d|token|api[_-]?key|signature|credential)[\w.-]*"
        r"|sig|pwd)=)"
        r"[^&\s'\"]+?(?=[:;,.]?(?:[&\s'\"]|$))",
        re.IGNORECASE,
    ),
    # A library's words, such as of a connection: bounded, since a word may be long.
    re.compile(
        r"((?<![\w.-])[\w.-]{0,40}(?:secret|passw(?:or)?d|token|api[_-]?key|pwd)=['\"]?)"
        r"[^&\s'\"]+?(?=[:;,.)]?(?:[&\s'\"]|$))",
        re.IGNORECASE,
    ),
    re.compile(r"(\bBearer )[\w.~+/=-]{16,}"),
)


def without_secrets(text: str) -> str:
    """Return a text, partly written by users, without its secrets."""
    return _of_process()(text)


@cache
def _of_process() -> Callable[[str], str]:
    return hider(os.environ)


def hider(environment: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function that removes an environment's secrets from texts."""
    values = {
        value
        for name, value in environment.items()
        if _NAMES.search(name.upper()) and not _NO_SECRET.search(name.upper())
        if len(value) >= LENGTH_MIN
    }
    longest_first = sorted(values, key=lambda value: (-len(value), value))
    known = re.compile("|".join(map(re.escape, longest_first))) if values else None

    def hidden(text: str) -> str:
        if known is not None:
            text = known.sub(HIDDEN, text)
        for pattern in _IN_ADDRESSES:
            text = pattern.sub(rf"\g<1>{HIDDEN}", text)
        return text

    return hidden
