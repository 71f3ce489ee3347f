"""Reports of rejected records on standard error."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ripple.cli.lib.exits import say
from ripple.cli.lib.output_forms import many
from ripple.connectors.dead_letter import DeadLetters
from ripple.connectors.headings import Headings
from ripple.connectors.target import open_target
from ripple.core.arguments import plain
from ripple.core.errors import InputError

if TYPE_CHECKING:
    import argparse

    from ripple.cli.lib.progress import Progress
    from ripple.connectors.target import Target
    from ripple.model.batch import Rejected

SHOWN_MAX = 5
RAW_CHARACTERS_SHOWN_MAX = 60
_ISO_TIME = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
_DECIMAL_COMMA = re.compile(rb"(^|[;|\t\"])\s*[+-]?\d+,\d+\s*([;|\t\r\n\"]|$)")
_WITHOUT_ZONE = re.compile(_ISO_TIME.pattern + rb"(:\d\d(\.\d{1,9})?)?([\s\",]|$)")


def _may_be_time(field: str, raw: bytes) -> bool:
    """Return whether a field's value, of a line without names any one, is a time of ISO 8601."""
    name = re.escape(field.rpartition(".")[2]).encode()
    before = rb'"%b"\s*:\s*"' % name if raw.lstrip().startswith(b"{") else b""
    return re.search(before + _ISO_TIME.pattern, raw) is not None


class ReportedLetters(DeadLetters):
    """Dead letters, of which the first SHOWN_MAX are printed and all are counted by reason."""

    def __init__(
        self,
        program: str,
        target: Target | None,
        *,
        file: str | None,
        names: Iterable[Iterable[str]],
        commas: bool = False,
        before_report: Callable[[], None],
    ) -> None:
        """Count from 0. file: that is read, if it is one. names, commas: of ``open_letters``."""
        super().__init__(target)
        self._file, self._headings = None if file == "-" else file, Headings(names)
        self._program, self._commas = program, commas
        self._kept_in = target.name if target is not None else None
        self._before_report = before_report

    def write(self, source: str, rejected: Iterable[Rejected]) -> None:
        """Count and store records, and print the first ones."""
        rejected = tuple(rejected)
        fresh = rejected[: max(SHOWN_MAX - self.total, 0)]
        if fresh:
            self._before_report()
        for record in fresh:
            place = record.place if record.file else f"{self._file or source}, {record.place}"
            say(
                f"{self._program}: {place}: {plain(record.cause)}: {shown(record.raw)}"
                f"{self._hint(record)}"
            )
        super().write(source, rejected)

    def _hint(self, record: Rejected) -> str:
        """Return a hint for a heading, an ISO time or a missing zone, "" for others.

        So do a decimal comma, and fields that another delimiter than the comma divides.
        """
        field = record.cause.removesuffix(" is not an integer")
        if field != record.cause and _may_be_time(field, record.raw):
            return (
                ' (is it a time? rp.field(format="iso") of its record reads it; for a log, the '
                "same with ripple log append --schema FILE.py:CLASS)"
            )
        is_instant = record.cause.endswith("such as 2026-01-31T09:30:00Z")
        if is_instant and _WITHOUT_ZONE.search(record.raw):
            return ' (without a zone? rp.field(format="iso", zone="UTC") reads it as UTC)'
        if self._headings.look(record):
            return " (is it a heading? --header reads it as one)"
        is_number = record.cause.endswith((" is not a number", " after"))
        if is_number and not self._commas and _DECIMAL_COMMA.search(record.raw):
            return (
                " (a decimal comma? 'FILE?decimal=,' reads it, beside another delimiter "
                "'FILE?delimiter=;&decimal=,')"
            )
        return ""

    def report_counts(self) -> None:
        """Print the number of records by reason."""
        say_counts(self.counts, self._kept_in)


def open_letters(
    program: str,
    options: argparse.Namespace,
    progress: Progress,
    *,
    file: str | None,
    names: Iterable[Iterable[str]] = (),
    commas: bool = False,
) -> DeadLetters:
    """Open the dead-letter target of ``--dead-letter``, if given. file: of the records, if any.

    names: of the fields of each source where ``--header`` would read a heading: a hint then.
    commas: whether decimal commas are read.
    With ``--strict`` the first rejected record ends the run with its error.
    """
    target = open_target(options.dead_letter) if options.dead_letter is not None else None
    if options.strict:
        return DeadLetters(target)
    return ReportedLetters(
        program,
        target,
        file=file,
        names=names,
        commas=commas,
        before_report=progress.clear,
    )


def say_counts(counts: Counter[str], kept_in: str | None) -> None:
    """Print the number of records by reason, and the file that keeps them, if any."""
    if not counts:
        return
    kept = f" (kept in {kept_in})" if kept_in else ""
    say(f"Rejected records: {counts.total()}{kept}")
    for reason, count in counts.most_common():
        say(f"{count:>10}  {plain(reason)}")


def all_rejected(place: str, total: int, kept_in: str | None) -> InputError:
    """Return the error where none of the records of a place was accepted."""
    where = f"they are in {kept_in}" if kept_in else "--dead-letter FILE keeps them"
    return InputError(f"all {many(total, 'record')} of {place} were rejected; {where}")


def shown(raw: bytes) -> str:
    """Return the beginning of a record, escaped for the terminal."""
    text = raw.decode(errors="backslashreplace")
    return repr(text[:RAW_CHARACTERS_SHOWN_MAX]) + "..." * (len(text) > RAW_CHARACTERS_SHOWN_MAX)
