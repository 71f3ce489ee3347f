"""CRC-32C (Castagnoli, polynomial 0x1EDC6F41), as RFC 3720 defines it.

It finds accidents, not attackers: an attacker computes it as easily as we do.
"""

from __future__ import annotations

from crc32c import crc32c

__all__ = ["crc32c"]
