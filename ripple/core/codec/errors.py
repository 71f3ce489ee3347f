"""What is wrong with encoded bytes; whose fault that is, the reader of them knows."""

from __future__ import annotations

from ripple.core.errors import RippleError


class EncodingError(RippleError):
    """Bytes are not what they claim to be; nothing of them was used."""
