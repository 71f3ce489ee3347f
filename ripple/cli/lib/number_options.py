"""Numeric arguments."""

from __future__ import annotations

import argparse

from ripple.core.errors import PlanError
from ripple.model.window import Tumbling, duration_ns

_DIGITS_MAX = 18


def count(text: str) -> int:
    """Parse a whole number, 0 or more."""
    if not text.isascii() or not text.isdigit() or len(text) > _DIGITS_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 10^{_DIGITS_MAX} - 1")
    return int(text)


def positive(text: str) -> int:
    """Parse a whole number, 1 or more."""
    if count(text) == 0:
        raise argparse.ArgumentTypeError("it must be at least 1")
    return int(text)


def offsets(text: str) -> tuple[int, int]:
    """Parse a range of offsets, first and last, such as 5000-5999."""
    first, _, last = text.partition("-")
    if count(first) > count(last):
        raise argparse.ArgumentTypeError(f"{text!r} ends before it begins")
    return int(first), int(last)


def clock_span(text: str) -> str:
    """Check a span of the wall clock such as ``500ms``, and return it as it is."""
    try:
        duration_ns(text, "it", of_wall_clock=True)
    except PlanError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def window_span_ns(text: str) -> int:
    """Parse the size of a tumbling window such as ``60s``."""
    try:
        return Tumbling(f"{duration_ns(text)}ns").size_ns
    except PlanError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def port(text: str) -> int:
    """Parse a port; 0 takes any free one."""
    if count(text) > 65_535:
        raise argparse.ArgumentTypeError("a port is 0 to 65535")
    return int(text)
