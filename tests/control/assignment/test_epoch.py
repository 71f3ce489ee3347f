"""Epochs follow from versions, within their bounds."""

from __future__ import annotations

import pytest

from ripple.control.assignment import ATTEMPTS_MAX, VERSION_MAX, epoch_of
from ripple.core.errors import LimitError


def test_epoch_is_the_version_and_the_attempt() -> None:
    assert epoch_of(1, 0) == 1024
    assert epoch_of(7, 3) == 7 * 1024 + 3


def test_every_attempt_since_a_later_version_is_above_all_before() -> None:
    assert epoch_of(8, 0) > epoch_of(7, ATTEMPTS_MAX - 1)


def test_largest_epoch_has_ten_digits() -> None:
    assert VERSION_MAX == 9_765_624
    assert len(str(epoch_of(VERSION_MAX, ATTEMPTS_MAX - 1))) == 10
    assert len(str((VERSION_MAX + 1) * ATTEMPTS_MAX + ATTEMPTS_MAX - 1)) == 11


@pytest.mark.parametrize(("since", "attempt"), [(0, 0), (VERSION_MAX + 1, 0), (1, -1), (1, 1024)])
def test_version_or_attempt_without_an_epoch_is_refused(since: int, attempt: int) -> None:
    with pytest.raises(LimitError, match="is not from"):
        epoch_of(since, attempt)
