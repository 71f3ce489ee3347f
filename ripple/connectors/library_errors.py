"""Errors of another system's client library, as one line of plain text."""

from __future__ import annotations

import re

_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b\x0e-\x1b\x7f-\x9f]")


def said(error: BaseException, text: str | None = None) -> str:
    """Return the error's text, or ``text``, in one line without a terminal's colours.

    The kind of error where it has no text.
    """
    plain = _COLOURS.sub("", text or str(error))
    return " ".join(plain.split()) or type(error).__name__
