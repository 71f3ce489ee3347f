"""Checks of users' arguments: errors name the argument, the value and the wanted one."""

from __future__ import annotations

import operator
import re
from typing import Any

from ripple.core.errors import PlanError, RippleError

SHOWN_MAX = 60  # characters of a value in a message
INT64_MAX = (1 << 63) - 1

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def shown(value: object) -> str:
    """Return a short text of any value, even one with a failing ``repr``, for messages."""
    try:
        text = _ADDRESS.sub("", repr(value))  # which is another one each time
        text.encode()
    except Exception:  # any error of a user's __repr__
        text = f"an object of type {type(value).__name__}"
    return text if len(text) <= SHOWN_MAX else f"{text[: SHOWN_MAX - 3]}..."


def plain(text: str) -> str:
    """Return a text with unprintable characters escaped, so that it cannot control the terminal."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def need_whole(
    what: str, given: Any, least: int, error: type[RippleError] = PlanError, most: int = INT64_MAX
) -> int:
    """Return a whole number from ``least`` to ``most``, Python's or NumPy's; raises ``error``."""
    try:
        number = None if isinstance(given, bool) else operator.index(given)
    except TypeError:
        number = None
    if number is None or not least <= number <= most:
        is_above = number is not None and number > most
        end = "on" if most == INT64_MAX and not is_above else f"to {most}"
        raise error(f"{what} must be a whole number from {least} {end}, not {shown(given)}")
    return number


def need_function(what: str, given: object, error: type[RippleError] = PlanError) -> None:
    """Raise ``error`` unless ``given`` can be called."""
    if not callable(given):
        raise error(f"{what} must be a function, not {shown(given)}")


def need_bool(what: str, given: object, error: type[RippleError] = PlanError) -> None:
    """Raise ``error`` unless ``given`` is True or False."""
    if not isinstance(given, bool):
        raise error(f"{what} must be True or False, not {shown(given)}")


def need_text(what: str, given: object, error: type[RippleError] = PlanError) -> None:
    """Raise ``error`` unless ``given`` is a text that is not empty and has a form in UTF-8."""
    if not isinstance(given, str) or not given:
        raise error(f"{what} must be a text, not {shown(given)}")
    try:
        given.encode()
    except UnicodeEncodeError:
        raise error(f"{what} must be a text in UTF-8, not {shown(given)}") from None
