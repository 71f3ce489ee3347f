"""Traces that begin are about as many a second as asked for, however many batches there are."""

from __future__ import annotations

import pytest

from ripple.control.telemetry.sampler import Sampler, SamplerLimits

NS = 1_000_000_000


def second(sampler: Sampler, number: int, batches: int) -> int:
    return sum(sampler.admits(number * NS + at * NS // batches) for at in range(batches))


@pytest.mark.parametrize("batches", [500, 5_000, 60_000])
def test_rate_settles_at_its_target(batches: int) -> None:
    sampler = Sampler(SamplerLimits(target_per_s=100))
    counts = [second(sampler, number, batches) for number in range(8)]
    assert counts[0] == batches
    assert all(90 <= count <= 110 for count in counts[2:]), counts


def test_where_little_happens_all_is_followed() -> None:
    sampler = Sampler()
    assert [second(sampler, number, 20) for number in range(5)] == [20] * 5


def test_a_rate_that_was_low_rises_when_less_happens() -> None:
    sampler = Sampler()
    for number in range(5):
        second(sampler, number, 50_000)
    assert sampler.rate < 0.01
    assert [second(sampler, 5 + number, 50) for number in range(5)][-1] == 50


def test_the_rate_has_bounds() -> None:
    sampler = Sampler(SamplerLimits(target_per_s=1, rate_min=0.01))
    for number in range(10):
        second(sampler, number, 10_000)
    assert sampler.rate == 0.01


def test_no_rhythm_of_batches_hides_a_partition() -> None:
    """Of eight partitions that take turns each is followed as often as the others."""
    sampler = Sampler()
    second(sampler, 0, 1000)
    chosen = [at % 8 for at in range(8000) if sampler.admits(NS + at)]
    counts = [chosen.count(partition) for partition in range(8)]
    assert max(counts) - min(counts) <= 0.1 * max(counts)
