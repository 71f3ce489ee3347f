"""Texts of libraries in messages of ours."""

from __future__ import annotations

from ripple.connectors.library_errors import said


def test_texts_are_one_line_without_colours() -> None:
    coloured = "Generic error:\n  \x1b[1;31mno\x1b[0m \x1b[38;5;2mspace\x07\x1b[K left\x1b"
    assert said(OSError(coloured)) == "Generic error: no space left"
    assert said(TimeoutError()) == "TimeoutError"
    assert said(ValueError("raw"), "what\tthe server says") == "what the server says"
