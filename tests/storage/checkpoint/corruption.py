"""Every bit flip and every truncation of a checkpoint of 64 KiB and of an increment: detected?

    python -m tests.storage.checkpoint.corruption

The normal tests try a sample of them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import pyarrow as pa

from ripple.storage.checkpoint import decode_file, encode, encode_file
from ripple.storage.fenced import DamagedError
from tests.storage.checkpoint.kit import fed_engine, feed

# An Arrow IPC file is 2 bytes longer than a multiple of 8.
LENGTH_BYTES = (1 << 16) + 2


def sample() -> bytes:
    """Return a checkpoint file of 64 KiB, of a real state."""
    (table,) = fed_engine(3_000, 20_000).snapshot().tables.values()
    while len(encode_file(table, _about(0))[0]) > LENGTH_BYTES:
        table = table.slice(0, table.num_rows * 99 // 100)
    # Metadata stand in the file twice, so that padding adds 16 bytes at a time.
    while True:
        padding = (LENGTH_BYTES - len(encode_file(table, _about(0))[0])) // 2
        data, _ = encode_file(table, _about(padding))
        if len(data) == LENGTH_BYTES:
            return bytes(data)
        table = table.slice(0, table.num_rows - 1)


def increment() -> bytes:
    """Return the file of a few changes."""
    engine = fed_engine(3_000, 20_000)
    stored = engine.snapshot()
    feed(engine, 3_000, 10)
    pending = engine.begin_snapshot(stored.number)
    while not pending.step(1_000):
        pass
    _, files = encode(pending.finish(), "0000000001-ab", 1, 0, base="0000000001-aa")
    (data,) = files.values()
    return bytes(data)


def _about(padding: int) -> dict[str, str]:
    return {"node_key": "trades/by-symbol/vwap#0", "padding": "x" * padding}


def is_detected(data: bytes | bytearray) -> bool:
    """Tell whether a full read of a changed file refuses it."""
    try:
        decode_file(data, "sample.arrow")
    except DamagedError:
        return True
    return False


def undetected_flips(data: bytes, bits: range) -> Iterator[int]:
    """Yield the bits whose flip goes unnoticed."""
    changed = bytearray(data)
    for bit in bits:
        changed[bit >> 3] ^= 1 << (bit & 7)
        if not is_detected(changed):
            yield bit
        changed[bit >> 3] ^= 1 << (bit & 7)


def undetected_cuts(data: bytes, lengths: range) -> Iterator[int]:
    """Yield the lengths to which the file can be cut unnoticed."""
    for length in lengths:
        if not is_detected(data[:length]):
            yield length


def main() -> int:
    """Try them all; return 1 if any goes unnoticed."""
    return max(_try_all(data) for data in (increment(), sample()))


def _try_all(data: bytes) -> int:
    _, table = decode_file(data, "sample.arrow")
    assert isinstance(table, pa.Table)
    started = time.monotonic()
    flips = range(8 * len(data))
    cuts = range(len(data))
    missed_flips = list(undetected_flips(data, flips))
    missed_cuts = list(undetected_cuts(data, cuts))
    seconds = time.monotonic() - started
    report = [f"{len(data)} bytes, {table.num_rows} rows, {seconds:.0f} s"]
    report.append(f"bit flips:   {len(flips) - len(missed_flips):,} of {len(flips):,} detected")
    report.append(f"truncations: {len(cuts) - len(missed_cuts):,} of {len(cuts):,} detected")
    sys.stdout.write("\n".join([*report, ""]))
    sys.stdout.flush()
    return bool(missed_flips or missed_cuts)


if __name__ == "__main__":
    sys.exit(main())
