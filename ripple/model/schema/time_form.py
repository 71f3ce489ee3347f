"""Times as sources write them, in text or as numbers of a unit; ours are nanoseconds in UTC.

A form is declared and never guessed. Each text is read to its last letter, and by one rule: a text
of another form is no time.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.core.arguments import shown
from ripple.core.errors import PlanError, SchemaError
from ripple.core.frozen import frozen
from ripple.model.schema.text_columns import parts, where_found
from ripple.model.schema.time_texts import times
from ripple.model.schema.typed_texts import with_marked

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.model.calendar.zone import Zone

    Mask = npt.NDArray[np.bool_]

UNITS_NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}
ISO = "iso"
DIRECTIVES = "%Y %m %d %H %M %S %z %f %3f %6f %9f %F %T %R %%"
BEYOND_INT64 = "does not fit in 64 bits"
FORM_MAX = 200  # characters

_LONGER = {"F": "%Y-%m-%d", "T": "%H:%M:%S", "R": "%H:%M"}
_PATTERN = re.compile(r"(?:[^%\x00]|%(?:[YmdHMSzfFTR%]|[369]f))*")
_OFFSET = re.compile(r"([+-])([01][0-9]|2[0-3]):([0-5][0-9])")


@frozen
class TimeForm:
    """How a source writes the times of a field.

    form: ``"iso"``; the unit of whole numbers since 1970, ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``;
    or a pattern of DIRECTIVES with the year, the month and the day. zone: of a text that names
    none, a name such as ``"America/New_York"`` or an offset such as ``"+01:00"``; without it such a
    text is no time. A time that clocks of the zone skip or show twice is none, either.
    short_ones: whether ISO's minutes may be missing, and its hour where there is a zone. Raises
    SchemaError for anything else.
    """

    form: str
    zone: str | None = None
    short_ones: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.form, str) or not (
            self.form in (ISO, *UNITS_NS) or "%" in self.form
        ):
            raise SchemaError(
                f"format is {shown(self.form)}: it is 'iso', 's', 'ms', 'us', 'ns' or a pattern "
                "such as '%d.%m.%Y %H:%M:%S', or of bytes 'base64' or 'hex'"
            )
        if self.zone is not None and not self.is_text:
            raise SchemaError(
                f"zone is {shown(self.zone)}, and numbers since 1970 are in UTC: leave it out"
            )
        if self.clocks is None:
            offset_s(self.zone)
        if self.is_text and self.form != ISO:
            self._check_pattern()

    def _check_pattern(self) -> None:
        if len(self.form) > FORM_MAX or not _PATTERN.fullmatch(self.form):
            raise SchemaError(
                f"format is {shown(self.form)}: a pattern has at most {FORM_MAX} characters, and "
                f"the directives {DIRECTIVES}"
            )
        pattern = _expanded(self.form).replace("%%", "")
        given = re.findall(r"%([A-Za-z])|%[369](f)", pattern)
        names = [one or other for one, other in given]
        for name in names:
            if names.count(name) > 1:
                raise SchemaError(f"format is {shown(self.form)}, which has %{name} twice")
        if not {"Y", "m", "d"} <= {*names}:
            raise SchemaError(
                f"format is {shown(self.form)}: a time has a year, a month and a day, %Y, %m and %d"
            )
        if "z" not in names and self.zone is None:
            raise SchemaError(
                f"format is {shown(self.form)}, in which no zone is written: add zone='UTC', or "
                "an offset such as zone='+01:00'"
            )
        if "z" in names and self.zone is not None:
            raise SchemaError(
                f"format is {shown(self.form)}, in which the zone is written: leave zone= out"
            )

    @property
    def clocks(self) -> Zone | None:
        """The zone that is given by its name; None for UTC and offsets.

        Raises SchemaError for an unknown name.
        """
        if not isinstance(self.zone, str) or not self.zone[:1].isalpha() or self.zone == "UTC":
            return None
        # Most pipelines have no zone, and the package is not read for them.
        from ripple.model.calendar.zone import zone  # noqa: PLC0415

        try:
            return zone(self.zone)
        except PlanError as error:
            raise SchemaError(f"zone is {shown(self.zone)}: {error}") from None

    @property
    def is_text(self) -> bool:
        """Whether the source has texts, and not whole numbers."""
        return self.form not in UNITS_NS

    @property
    def is_other_unit(self) -> bool:
        """Whether the source has numbers that are no nanoseconds."""
        return UNITS_NS.get(self.form, 1) != 1

    @property
    def words(self) -> str:
        """The reason for a value that is no time, after "the field"."""
        if not self.is_text:
            return BEYOND_INT64
        if self.form != ISO:
            kind = f"the form {self.form}"
        else:
            kind = f"ISO 8601 such as 2026-01-31T09:30:00{'' if self.zone else 'Z'}"
        skipped = f", or one that clocks of {self.zone} skip or show twice" if self.clocks else ""
        return f"is no time of {kind}{skipped}"

    def parsed(self, column: pa.Array) -> tuple[pa.Array, Mask]:
        """Return a column of strings, or of int64, as nanoseconds, and where it is no time.

        It is null there, and where the column is.
        """
        if not self.is_text:
            return in_ns(column, UNITS_NS[self.form])
        read = self._read(column)
        return read if self.form == ISO else with_marked(column, *read, TimeForm(ISO, self.zone))

    def _read(self, column: pa.Array) -> tuple[pa.Array, Mask]:
        form = b"" if self.form == ISO else _expanded(self.form).encode()
        has_zone, east_s = self.zone is not None, 0 if self.clocks else offset_s(self.zone)
        valid, offsets, data = parts(column)
        values, found = times(valid, offsets, data, form, has_zone, east_s, self.short_ones)
        if self.clocks is None:
            return where_found(values, found.view(np.bool_), column)
        # As of UTC: those with a zone of their own are instants, the others what clocks show.
        if self.form == ISO:
            _, has_own = times(valid, offsets, data, form, False, 0, self.short_ones)
        else:
            has_own = np.zeros_like(found)
        instants, is_one = self.clocks.instants_ns(values)
        own, read = has_own.view(np.bool_), found.view(np.bool_)
        return where_found(np.where(own, values, instants), own | (read & is_one), column)


def in_ns(column: pa.Array, unit_ns: int) -> tuple[pa.Array, Mask]:
    """Return whole numbers of a unit as nanoseconds, and where they do not fit in 64 bits.

    It is null there, and where the column is.
    """
    numbers = np.asarray(column.fill_null(0))
    far = is_far(numbers, unit_ns)
    return where_found(np.where(far, 0, numbers) * unit_ns, ~far, column)


def is_far(numbers: npt.NDArray[Any], unit_ns: int) -> Mask:
    """Return which numbers of a unit need more than 64 bits as nanoseconds."""
    limits = np.iinfo(np.int64)
    far: Mask = (numbers > limits.max // unit_ns) | (numbers < -(-limits.min // unit_ns))
    return far


def offset_s(zone: str | None) -> int:
    """Return the seconds that a zone is east of UTC; 0 for none. Raises SchemaError."""
    if zone is None or zone == "UTC":
        return 0
    found = _OFFSET.fullmatch(zone) if isinstance(zone, str) else None
    if found is None:
        raise SchemaError(
            f"zone is {shown(zone)}: it is 'UTC', a name such as 'America/New_York' or an offset "
            "such as '+01:00'"
        )
    return (3600 * int(found[2]) + 60 * int(found[3])) * (-1 if found[1] == "-" else 1)


def _expanded(form: str) -> str:
    """Return a pattern without directives for several others."""
    pieces = re.findall(r"%[369]f|%.|[^%]+", form, re.DOTALL)
    return "".join(_LONGER.get(one[1:], one) if one[0] == "%" else one for one in pieces)
