"""A signal that interrupts a command on Spark is what the command ends with."""

from __future__ import annotations

import signal

import pytest

from ripple.cli.lib.exits import SignalledError
from ripple.cli.spark.session import _Heard
from ripple.core.errors import RippleError


@pytest.mark.parametrize(
    ("number", "kind"),
    [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SignalledError)],
)
def test_an_error_on_the_way_out_is_not_what_is_told(
    number: signal.Signals, kind: type[BaseException]
) -> None:
    before = signal.signal(number, signal.default_int_handler)
    heard = _Heard()
    try:
        heard.raise_instead(RippleError("no signal came"))
        with pytest.raises(kind):
            _interrupted(heard, number)
    finally:
        heard.end()
        assert signal.signal(number, before) is signal.default_int_handler


def _interrupted(heard: _Heard, number: signal.Signals) -> None:
    try:
        with pytest.raises(KeyboardInterrupt):  # which py4j knows
            signal.raise_signal(number)
        raise RippleError("the answer to another question")
    except RippleError as error:
        heard.raise_instead(error)
        raise
