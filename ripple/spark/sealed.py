"""What processes of ours tell each other: JSON behind a keyed hash, which who has the key can make.

Nothing is hidden by it, and the key does not travel.
"""

from __future__ import annotations

import hmac
import json
from typing import Any

_MAC_BYTES = 32


class ForgedError(ValueError):
    """Nobody has said this who has the key, or not here and now."""


def sealed(key: str, about: bytes, value: Any) -> bytes:
    """Return a value of JSON as bytes. about: of what it is said; elsewhere it is forged."""
    body = json.dumps(value).encode()
    return _mac(key, about, body) + body


def unsealed(key: str, about: bytes, data: bytes) -> Any:
    """Return what was sealed. Raises ForgedError; nothing is parsed before."""
    mac, body = data[:_MAC_BYTES], data[_MAC_BYTES:]
    if not hmac.compare_digest(mac, _mac(key, about, body)):
        raise ForgedError("a message that was not made with the key")
    return json.loads(body)


def _mac(key: str, about: bytes, body: bytes) -> bytes:
    return hmac.digest(key.encode(), len(about).to_bytes(4, "big") + about + body, "sha256")
