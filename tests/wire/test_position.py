"""Cuts are vectors under the product order; a position judges epochs and ranges by it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripple.errors import LimitError
from ripple.wire.messages import cut_of
from ripple.wire.position import Position, Positions, Stream, Verdict, is_same, is_within

INPUTS = ("a", "b", "c")
CUTS = st.dictionaries(st.sampled_from(INPUTS), st.integers(0, 3)).map(cut_of)
S = Stream("vwap", 0)


def _vector(cut):
    return [dict(cut).get(name, 0) for name in INPUTS]


@given(CUTS, CUTS, CUTS)
def test_cuts_form_a_partial_order(x, y, z):
    assert is_within(x, y) == all(p <= q for p, q in zip(_vector(x), _vector(y), strict=True))
    assert is_within(x, x)
    assert is_same(x, y) == (_vector(x) == _vector(y))
    if is_within(x, y) and is_within(y, z):
        assert is_within(x, z)


@given(CUTS, CUTS, CUTS)
def test_verdict_on_a_range_follows_the_vectors(ours, start, more):
    upto = cut_of({n: dict(start).get(n, 0) + dict(more).get(n, 0) for n in INPUTS})
    positions = Positions({S: Position(5, ours)})
    verdict = positions.judge(S, 5, start, upto)
    here, there = _vector(ours), _vector(upto)
    if all(q <= p for p, q in zip(here, there, strict=True)):
        assert verdict is Verdict.REPEAT
    elif any(q < p for p, q in zip(here, there, strict=True)):
        assert verdict is Verdict.SHORT
    else:
        assert verdict is (Verdict.NEXT if _vector(start) == here else Verdict.GAP)
    assert positions.judge(S, 4, start, upto) is Verdict.STALE
    assert positions.judge(S, 6, start, upto) is Verdict.NEWER


def test_epoch_below_the_fence_stays_refused_whoever_raised_it():
    positions = Positions()
    positions.fence(S, 7)
    positions.fence(S, 6)
    assert positions[S] == Position(7, None)
    assert positions.judge_epoch(S, 6) is Verdict.STALE


def test_position_never_goes_back():
    positions = Positions({S: Position(1, cut_of({"a": 5, "b": 2}))})
    assert not positions.may_adopt(S, cut_of({"a": 9, "b": 1}))
    with pytest.raises(AssertionError):
        positions.advance(S, cut_of({"a": 4, "b": 2}))


def test_streams_beyond_the_limit_are_an_error_that_names_it():
    positions = Positions(streams_max=1)
    positions.fence(S, 1)
    with pytest.raises(LimitError, match="streams_max is 1"):
        positions.fence(Stream("vwap", 1), 1)
