"""The hashes that partitions and digests rest on are pinned to their published vectors."""

from __future__ import annotations

import numpy as np
import pytest

from ripple.core.hashing import HAS_WIDE, mix_each_at, mix_of, murmur2_of, partition_of, xxh64_of


def _signed32(value: int) -> int:
    return value - (1 << 32) if value >= 1 << 31 else value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # The cases of Kafka's own UtilsTest.testMurmur2.
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        ("abc", 479470107),
    ],
)
def test_murmur2_matches_kafka(text: str, expected: int) -> None:
    assert _signed32(murmur2_of(text.encode())) == expected
    assert partition_of(text.encode(), 128) == (expected & 0x7FFFFFFF) % 128


@pytest.mark.parametrize(
    ("data", "seed", "expected"),
    [
        (b"", 0, 0xEF46DB3751D8E999),
        (b"a", 0, 0xD24EC4F1A98C6E5B),
        (b"abc", 0, 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0, 0xFBCEA83C8A378BF1),
        (b"", 2654435761, 0xAC75FDA2929B17EF),
    ],
)
def test_xxh64_matches_the_reference(data: bytes, seed: int, expected: int) -> None:
    assert xxh64_of(data, seed) == expected


WIDE = pytest.mark.skipif(not HAS_WIDE, reason="this processor has no AVX-512: one by one it is")


@pytest.mark.parametrize("wide", [False, pytest.param(True, marks=WIDE)])
def test_many_mixes_are_the_mix_of_each(wide: bool) -> None:
    rng = np.random.default_rng(8)
    for count in range(40):
        values = rng.integers(0, 1 << 64, 100, np.uint64)
        places = rng.integers(0, 100, count)
        before = rng.integers(0, 1 << 64, count, np.uint64)
        after = before.copy()
        mix_each_at(after, values, places, wide=wide)
        each = zip(before.tolist(), values[places].tolist(), strict=True)
        assert after.tolist() == [_mix(one, value) for one, value in each]
        assert all(mix_of(1, value) == _mix(1, value) for value in values.tolist())


def _mix(h: int, value: int) -> int:
    bits = (1 << 64) - 1
    h = (h * 0x9E3779B97F4A7C15 & bits) ^ value
    h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD & bits
    h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 & bits
    return h ^ h >> 33
