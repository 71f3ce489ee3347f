"""Bytes that are checked before use: checksums, compression, Arrow streams.

Frames of the wire and of logs are made of these; none of them does I/O.

crc          CRC-32C
compression  LZ4 and Zstandard by pyarrow, within bounds; lengths: what packed bytes will hold
arrow        record batches as Arrow IPC streams
"""

from __future__ import annotations

Buffer = bytes | bytearray | memoryview
