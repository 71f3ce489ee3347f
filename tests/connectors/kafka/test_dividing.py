"""The hash by which a topic is partitioned is detected, if it is not the declared one."""

from __future__ import annotations

import re
import zlib

import pytest

from ripple.connectors.kafka.partitioner_check import check_division
from ripple.core.errors import InputError
from ripple.core.hashing import partition_of

KEYS = [b"AAPL", b"MSFT", b"GOOG", b"AMZN", b"S1", b"S2"]


def test_keys_that_lie_where_murmur2_puts_them_are_good() -> None:
    check_division("kafka:a/t", [(key, partition_of(key, 4)) for key in KEYS], 4)
    check_division("kafka:a/t", [], 4)


def test_librdkafkas_default_is_named() -> None:
    keys = [(key, zlib.crc32(key) % 4) for key in KEYS]
    with pytest.raises(InputError, match=re.escape("CRC-32 of it (librdkafka's default) puts it")):
        check_division("kafka:a/t", keys, 4)


def test_unpartitioned_keys_are_detected() -> None:
    at = (partition_of(b"AAPL", 4) + 1) % 4
    with pytest.raises(InputError, match=re.escape(f"b'AAPL' lies in partition {at}, where")):
        check_division("kafka:a/t", [(b"AAPL", at), (b"MSFT", partition_of(b"MSFT", 4))], 4)
