"""The error of encoded bytes; their reader knows the culprit."""

from __future__ import annotations

from ripple.core.errors import RippleError


class EncodingError(RippleError):
    """Bytes are not of their declared form; nothing of them was used."""
