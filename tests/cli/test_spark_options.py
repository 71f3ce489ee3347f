"""An option of a command on Spark that would mean nothing is refused before a JVM is started."""

from __future__ import annotations

import pytest

from tests.cli.processes import ripple

RUN = ("run", "x.py", "--source", "log:a/b", "--sink", "log:a/c", "--store", "s")
VALIDATE = ("validate", "x.py", "--source", "log:a/b", "--against", "log:a/c")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((*RUN, "--every", "5 seconds"), "--every goes with --follow"),
        ((*VALIDATE, "--sample", "1%"), "--sample goes with --watch"),
        ((*VALIDATE, "--metrics", "127.0.0.1:0"), "--metrics goes with --watch"),
        ((*VALIDATE, "--watch", "--crashes", "9"), "--crashes does not go with --watch"),
        ((*VALIDATE, "--watch", "--html", "v.html"), "--html does not go with --watch"),
        ((*VALIDATE, "--watch", "--from", "17"), "--from does not go with --watch"),
    ],
)
def test_an_option_that_would_mean_nothing_is_named(arguments: tuple[str, ...], why: str) -> None:
    ended = ripple("spark", *arguments)
    assert ended.code == 1
    assert ended.only_line.startswith(f"ripple: {why}")
