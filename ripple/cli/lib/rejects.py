"""Reports of rejected records on standard error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ripple.cli.lib.exits import say
from ripple.connectors.dead_letter import DeadLetters
from ripple.connectors.hints import Hints
from ripple.connectors.target import open_target
from ripple.core.arguments import plain
from ripple.core.errors import InputError

if TYPE_CHECKING:
    import argparse

    from ripple.connectors.target import Target
    from ripple.model.batch import Rejected
    from ripple.task.progress import Progress

SHOWN_MAX = 5
RAW_CHARACTERS_SHOWN_MAX = 60


class ReportedLetters(DeadLetters):
    """Dead letters, of which the first SHOWN_MAX are printed and all are counted by reason."""

    def __init__(
        self,
        program: str,
        target: Target | None,
        *,
        file: str | None,
        hints: Hints,
        before_report: Callable[[], None],
    ) -> None:
        """Count from 0. file: the input file, if it is one. hints: collects them."""
        super().__init__(target)
        self._file, self._hints = None if file == "-" else file, hints
        self._program = program
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
            hint = self._hints.look(record)
            say(
                f"{self._program}: {place}: {plain(record.cause)}: {shown(record.raw)}"
                + (f" ({hint.command})" if hint else "")
            )
        super().write(source, rejected)

    def report_counts(self) -> None:
        """Print the number of records by reason."""
        say_counts(self.counts, self._kept_in)


def open_letters(
    program: str,
    options: argparse.Namespace,
    progress: Progress,
    *,
    file: str | None,
    hints: Hints | None = None,
) -> DeadLetters:
    """Open the dead-letter target of ``--dead-letter``, if given. file: of the records, if any.

    hints: looks for them, by default without the names of fields.
    With ``--strict`` the first rejected record ends the run with its error.
    """
    target = open_target(options.dead_letter) if options.dead_letter is not None else None
    if options.strict:
        return DeadLetters(target)
    return ReportedLetters(
        program,
        target,
        file=file,
        hints=hints or Hints(),
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
    if total == 1:
        where = f"it is in {kept_in}" if kept_in else "--dead-letter FILE keeps it"
        return InputError(f"the only record of {place} was rejected; {where}")
    where = f"they are in {kept_in}" if kept_in else "--dead-letter FILE keeps them"
    return InputError(f"all {total} records of {place} were rejected; {where}")


def shown(raw: bytes) -> str:
    """Return the beginning of a record, escaped for the terminal."""
    text = raw.decode(errors="backslashreplace")
    return repr(text[:RAW_CHARACTERS_SHOWN_MAX]) + "..." * (len(text) > RAW_CHARACTERS_SHOWN_MAX)
