"""Aggregates, running values and windows that are called without their arguments."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import Any

import pytest

import ripple as rp
from ripple.model import aggregate, running, window

NAMES = sorted(
    name
    for name in dir(rp)
    if name in {*dir(aggregate), *dir(running), *dir(window)}
    and callable(made := getattr(rp, name))
    and made.__module__.startswith("ripple.model")
    and any(
        one.default is Parameter.empty and one.kind is not Parameter.VAR_POSITIONAL
        for one in signature(made).parameters.values()
    )
)


@pytest.mark.parametrize("name", NAMES)
def test_a_call_without_arguments_says_how_to_write_it(name: str) -> None:
    made: Any = getattr(rp, name)
    with pytest.raises(rp.PlanError, match=rf"^rp\.{name}: missing a required.*: write rp\.{name}"):
        made()


def test_they_are_all_of_them() -> None:
    assert {"sum", "vwap", "top_rows", "Last", "OnCount", "Tumbling", "ema", "bar"} < {*NAMES}


def test_what_is_to_write_can_be_written() -> None:
    with pytest.raises(rp.PlanError, match=r"write rp.percentile\(\"FIELD\", 0.95\), optionally"):
        rp.percentile("price")  # type: ignore[call-arg]
    with pytest.raises(rp.PlanError, match=r"rp.Last: .* 'rows': write rp.Last\(20\)$"):
        rp.Last()  # type: ignore[call-arg]
    with pytest.raises(rp.PlanError, match="got an unexpected keyword argument 'column'"):
        rp.sum("price", column="size")  # type: ignore[call-arg]
