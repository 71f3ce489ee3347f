"""How many records of a one-shot run may be rejected."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ripple.core.arguments import shown
from ripple.core.errors import InputError
from ripple.core.frozen import frozen

if TYPE_CHECKING:
    from collections import Counter

_REASONS_MAX = 5


class AllRejectedError(InputError):
    """Ends a run by its default: it has rejected all its records."""


_PERCENT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")


@frozen
class RejectionLimit:
    """The most records that may be rejected: a count, a part, or, without either, all but one.

    count: one more ends the run at once. percent: of all records, 0 to 100, checked at the end.
    """

    count: int | None = None
    percent: float | None = None

    @classmethod
    def of(cls, given: int | str | None) -> RejectionLimit:
        """Return the limit that an argument says: a number, ``"5%"``, or None for the default.

        Raises InputError.
        """
        if given is None:
            return cls()
        if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
            return cls(count=given)
        if isinstance(given, str):
            if given.strip().isdecimal():
                return cls(count=int(given))
            found = _PERCENT.fullmatch(given)
            if found is not None and float(found[1]) <= 100:
                return cls(percent=float(found[1]))
        raise InputError(
            f"max_rejected must be a number of records from 0 on, or a text such as '5%', not "
            f"{shown(given)}"
        )

    def check(self, rejected: Counter[str], consumed: int | None = None, *, hint: str = "") -> None:
        """Raise InputError if too many were rejected. consumed: of all records, at the end.

        hint: for the error, as of ``hint_of``.
        """
        count = rejected.total()
        if self.count is not None:
            if count > self.count:
                raise InputError(f"{_records(count)} rejected{_why(rejected, self.count)}{hint}")
        elif consumed is not None and count:
            if self.percent is None and count == consumed:
                raise AllRejectedError(
                    f"all {_records(count)} rejected ({reasons_text(rejected)}): the run commits "
                    f"nothing{hint}. Mend them, or the record class; max_rejected='100%' lets "
                    "such a run end"
                )
            if self.percent is not None and count * 100 > self.percent * consumed:
                limit = f"{self.percent:g}%"
                raise InputError(
                    f"{count} of {_records(consumed)} rejected{_why(rejected, limit)}{hint}"
                )


def _records(count: int) -> str:
    return f"{count} records were" if count != 1 else "1 record was"


def _why(rejected: Counter[str], limit: object) -> str:
    return f", more than max_rejected={limit} ({reasons_text(rejected)}): the run commits nothing"


def reasons_text(rejected: Counter[str]) -> str:
    """Return the most frequent reasons of rejected records, with their numbers."""
    told = [f"{why}: {count}" for why, count in rejected.most_common(_REASONS_MAX)]
    return ", ".join([*told, *["..."] * (len(rejected) > _REASONS_MAX)])
