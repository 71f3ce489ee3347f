"""A signal that interrupts a command on Spark is what the command ends with."""

from __future__ import annotations

import signal

import pytest

from ripple.cli.exits import SignalledError, _end
from ripple.cli.spark_session import _Heard
from ripple.errors import RippleError


@pytest.mark.parametrize(
    ("number", "handler", "kind"),
    [
        (signal.SIGINT, signal.default_int_handler, KeyboardInterrupt),
        (signal.SIGTERM, _end, SignalledError),
    ],
)
def test_an_error_on_the_way_out_is_not_what_is_told(
    number: signal.Signals, handler: object, kind: type[BaseException]
) -> None:
    before = signal.signal(number, handler)  # type: ignore[arg-type]
    heard = _Heard()
    try:
        heard.raise_instead(RippleError("no signal came"))
        with pytest.raises(kind):
            _interrupted(heard, number)
    finally:
        heard.end()
        found = signal.signal(number, before)
    assert found in (handler, signal.SIG_IGN)  # which is how a signal that ends is heard once


def _interrupted(heard: _Heard, number: signal.Signals) -> None:
    try:
        try:
            signal.raise_signal(number)
        finally:
            raise RippleError("the answer to another question")
    except RippleError as error:
        heard.raise_instead(error)
        raise
