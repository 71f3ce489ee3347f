"""Authenticated messages between our processes: JSON with a keyed hash.

They are not encrypted, and the key is never sent.
"""

from __future__ import annotations

import hmac
import json
from typing import Any

_MAC_BYTES = 32


class ForgedError(ValueError):
    """The message was not made with the key, or for another connection."""


def sealed(key: str, about: bytes, value: Any) -> bytes:
    """Return a JSON value as bytes. about: its context; in another one it counts as forged."""
    body = json.dumps(value).encode()
    return _mac(key, about, body) + body


def unsealed(key: str, about: bytes, data: bytes) -> Any:
    """Return the sealed value. Raises ForgedError before anything is parsed."""
    mac, body = data[:_MAC_BYTES], data[_MAC_BYTES:]
    if not hmac.compare_digest(mac, _mac(key, about, body)):
        raise ForgedError("a message that was not made with the key")
    return json.loads(body)


def _mac(key: str, about: bytes, body: bytes) -> bytes:
    return hmac.digest(key.encode(), len(about).to_bytes(4, "big") + about + body, "sha256")
