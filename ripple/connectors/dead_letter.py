"""Rejected records, counted and stored as dead letters."""

from __future__ import annotations

import codecs
import json
import os
from typing import TYPE_CHECKING

from ripple.core.causes import Causes
from ripple.model.batch import RAW_BYTES_MAX, Rejected

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.connectors.target import Target


class DeadLetters:
    """Counts rejected records by reason, and writes each as a line of JSON if there is a target.

    A line has ``source``, ``offset``, ``line_number`` (null if there are no lines), ``reason``
    and ``raw``, the record as text, or ``raw_base64`` if it is not UTF-8; of a source of several
    files also ``file``. ``close`` completes the target, also when the run has failed, so that its
    reasons can be read.
    """

    def __init__(self, target: Target | None = None) -> None:
        self.counts = Causes()
        self._target = target

    @property
    def total(self) -> int:
        """The number of rejected records so far."""
        return self.counts.total()

    @property
    def place(self) -> str | None:
        """The target of rejected records, None if they are only counted."""
        return None if self._target is None else self._target.name

    def write(self, source: str, rejected: Iterable[Rejected]) -> None:
        """Count and keep records of ``source``. Raises OutputError, which names the target."""
        lines = []
        for record in rejected:
            self.counts.add(record.cause)
            if self._target is not None:
                lines.append(json.dumps(letter_of(source, record), ensure_ascii=False) + "\n")
        if self._target is not None and lines:
            self._target.write("".join(lines).encode())

    def close(self) -> None:
        """Complete the target and release it."""
        target, self._target = self._target, None
        if target is not None:
            try:
                target.commit()
            finally:
                target.close()


def letter_of(source: str, record: Rejected) -> dict[str, str | int | None]:
    """Return a rejected record as JSON has it."""
    letter: dict[str, str | int | None] = {
        "source": source,
        "offset": record.offset,
        "line_number": record.line_number,
        "reason": record.cause,
    }
    if record.file is not None:
        letter["file"] = file_text(record.file)
    text = text_of(record.raw)
    if text is None:
        import base64  # noqa: PLC0415 - slow to import, rarely wanted

        letter["raw_base64"] = base64.b64encode(record.raw).decode()
    else:
        letter["raw"] = text
    return letter


def file_text(file: str | None) -> str | None:
    """Return a file's name as text, also if it is not UTF-8."""
    return None if file is None else os.fsencode(file).decode(errors="backslashreplace")


def text_of(raw: bytes) -> str | None:
    """Return the raw bytes of a rejected record as text, None if they are not UTF-8.

    A long record was cut, maybe within a character, which is then left out.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        return decoder.decode(raw, final=len(raw) < RAW_BYTES_MAX)
    except UnicodeDecodeError:
        return None
