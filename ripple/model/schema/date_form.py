"""Dates as sources write them, in text; ours are days since 1970.

As with times, a form is declared and never guessed, and a text is read to its last letter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from ripple.core.arguments import shown
from ripple.core.errors import SchemaError
from ripple.core.frozen import frozen
from ripple.model.schema.text_columns import parts, where_found
from ripple.model.schema.time_texts import dates
from ripple.model.schema.typed_texts import with_marked

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    Mask = npt.NDArray[np.bool_]

ISO = "iso"
DIRECTIVES = "%Y %m %d %F %%"
FORM_MAX = 200  # characters

_PATTERN = re.compile(r"(?:[^%\x00]|%[YmdF%])*")


@frozen
class DateForm:
    """How a source writes the dates of a field.

    form: ``"iso"``, which is 2026-01-31, or a pattern of DIRECTIVES with the year, the month and
    the day. Raises SchemaError for anything else.
    """

    form: str = ISO

    is_text = True
    is_other_unit = False
    clocks = None

    def __post_init__(self) -> None:
        if self.form == ISO:
            return
        if not is_date_pattern(self.form) or len(self.form) > FORM_MAX:
            raise SchemaError(
                f"format is {shown(self.form)}: that of a date is 'iso' or a pattern such as "
                f"'%d.%m.%Y', with the directives {DIRECTIVES}"
            )
        pattern = self._expanded().replace("%%", "")
        if sorted(re.findall("%.", pattern)) != ["%Y", "%d", "%m"]:
            raise SchemaError(
                f"format is {shown(self.form)}: a date has a year, a month and a day, %Y, %m and "
                "%d, once each"
            )

    @property
    def words(self) -> str:
        """The reason for a value that is no date, after "the field"."""
        if self.form != ISO:
            return f"is no date of the form {self.form}"
        return "is no date of ISO 8601 such as 2026-01-31"

    def parsed(self, column: pa.Array) -> tuple[pa.Array, Mask]:
        """Return a column of strings as days since 1970, and where it is no date.

        It is null there, and where the column is.
        """
        form = b"" if self.form == ISO else self._expanded().encode()
        values, found = dates(*parts(column), form)
        read = where_found(values, found.view(np.bool_), column)
        return read if self.form == ISO else with_marked(column, *read, DateForm())

    def _expanded(self) -> str:
        pieces = re.findall(r"%.|[^%]+", self.form, re.DOTALL)
        return "".join("%Y-%m-%d" if one == "%F" else one for one in pieces)


def is_date_pattern(form: object) -> bool:
    """Whether a form is a pattern of directives for dates alone."""
    return isinstance(form, str) and "%" in form and bool(_PATTERN.fullmatch(form))
