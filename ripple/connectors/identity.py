"""What tells a place from any other, so that two processes know whether they mean the same one."""

from __future__ import annotations

import hashlib
import os
import re
from typing import TYPE_CHECKING

from ripple.connectors.installed import load
from ripple.connectors.registry import find

if TYPE_CHECKING:
    from ripple.connectors.registry import UseName

LENGTH_MAX = 200
_CREDENTIALS = re.compile(r"//[^/@]*@")


def identity_of(place: str, use: UseName) -> str:
    """Return a text that is the same for whoever means the same place, and no secret is in it.

    Files and folders go by their real paths, so machines that share them have them at the same.
    Raises InputError, OutputError and ConnectorError, as opening it does.
    """
    found = find(place, use)
    connector = found.connector
    if connector.identity:
        text: str = load(connector.scheme, connector.package, connector.identity)(found.path)
    elif connector.path_of is not None and (path := connector.path_of(found.path)) is not None:
        text = f"{connector.scheme}:{os.path.realpath(path)}"
    else:
        text = f"{connector.scheme}:{_CREDENTIALS.sub('//', found.path)}"
    return shortened(text)


def shortened(text: str) -> str:
    """Return a text that is short enough to be said to others, and still no other one's."""
    if len(text) <= LENGTH_MAX:
        return text
    return f"{text[:LENGTH_MAX]}… {hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"
