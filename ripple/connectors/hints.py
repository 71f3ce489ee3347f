"""Hints at the likely cause of a rejected record, with its remedy, for commands and programs."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.model.batch import Rejected
    from ripple.model.schema.types import Field

_DELIMITERS = re.compile(r"[,;|\t]")
_ISO_TIME = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
_DECIMAL_COMMA = re.compile(rb"(^|[;|\t\"])\s*[+-]?\d+,\d+\s*([;|\t\r\n\"]|$)")
_POINTS = re.compile(rb"(^|[;|\t\"])\s*[+-]?\d{1,3}(\.\d{3})+,\d+\s*([;|\t\r\n\"]|$)")
_COMMAS = re.compile(rb"(^|[;|\t\"])\s*[+-]?\d{1,3}(,\d{3})+\.\d+\s*([;|\t\r\n\"]|$)")
_WITHOUT_ZONE = re.compile(_ISO_TIME.pattern + rb"(:\d\d(\.\d{1,9})?)?([\s\",]|$)")


class Hint(NamedTuple):
    """A question and its answer: of a command, and of a program where that differs."""

    command: str
    program: str

    @classmethod
    def alike(cls, text: str) -> Hint:
        """Return a hint that is the same for both."""
        return cls(text, text)


TIME = Hint(
    'is it a time? rp.field(format="iso") of its record reads it; for a log, the same with '
    "ripple log append --schema FILE.py:CLASS",
    'is it a time? rp.field(format="iso") of its record reads it',
)
ZONE = Hint.alike('without a zone? rp.field(format="iso", zone="UTC") reads it as UTC')
HEADING = Hint(
    "is it a heading? --header reads it as one", "is it a heading? header=True reads it as one"
)
COMMA = Hint.alike(
    "a decimal comma? 'FILE?decimal=,' reads it, beside another delimiter "
    "'FILE?delimiter=;&decimal=,'"
)
POINTS = Hint.alike("points before thousands? 'FILE?decimal=,&thousands=.' reads them")
COMMAS = Hint.alike("commas before thousands? 'FILE?thousands=,' reads them")
ARRAY = Hint(
    "an array of records? jq -c '.[]' FILE makes a line of each, which is read",
    "an array of records? source=json.loads(text) reads it, and jq -c '.[]' FILE makes lines",
)
UTF_16 = Hint.alike("UTF-16? iconv -f UTF-16 -t UTF-8 FILE makes it UTF-8, which is read")


class Hints:
    """Finds hints. ``first`` is the hint of the first record with one, None before it."""

    def __init__(
        self,
        names: Iterable[Iterable[str]] = (),
        *,
        commas: bool = False,
        thousands: bool = False,
    ) -> None:
        """Take the names of the fields of each source; none where headings are read as such.

        commas: whether decimal commas are read; thousands: whether marks of thousands are.
        """
        self._names = [*map(frozenset, names)]
        self._commas = commas
        self._thousands = thousands
        self.first: Hint | None = None

    @classmethod
    def of(cls, sources: Iterable[Iterable[Field]], uris: Iterable[str], *, header: bool) -> Hints:
        """Return those for a run. sources: the fields of each; uris: of files, if there are any."""
        uris = [*uris]
        names = [[field.name for field in one] for one in sources] if uris and not header else []
        commas, thousands = (
            any(option in one for one in uris) for option in ("decimal=", "thousands=")
        )
        return cls(names, commas=commas, thousands=thousands)

    def look(self, record: Rejected) -> Hint | None:
        """Return the hint of a record, None for most."""
        found = self._of(record)
        self.first = self.first or found
        return found

    def _of(self, record: Rejected) -> Hint | None:
        if record.raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return UTF_16
        if record.cause == "not a JSON record" and record.raw.lstrip().startswith(b"["):
            return ARRAY
        field = record.cause.removesuffix(" is not an integer")
        if field != record.cause and _may_be_time(field, record.raw):
            return TIME
        is_instant = record.cause.endswith("such as 2026-01-31T09:30:00Z")
        if is_instant and _WITHOUT_ZONE.search(record.raw):
            return ZONE
        text = record.raw.decode(errors="replace")
        words = {word.strip(" \"'") for word in _DELIMITERS.split(text)}
        if any(len(fields & words) > len(fields) // 2 for fields in self._names):
            return HEADING
        is_number = record.cause.endswith((" is not a number", " after"))
        if is_number and not self._commas and _DECIMAL_COMMA.search(record.raw):
            return COMMA
        if is_number and not self._thousands and _POINTS.search(record.raw):
            return POINTS
        if is_number and not (self._commas or self._thousands) and _COMMAS.search(record.raw):
            return COMMAS
        return None


def _may_be_time(field: str, raw: bytes) -> bool:
    """Return whether a field's value is a time of ISO 8601; of a line without names, any value."""
    name = re.escape(field.rpartition(".")[2]).encode()
    before = rb'"%b"\s*:\s*"' % name if raw.lstrip().startswith(b"{") else b""
    return re.search(before + _ISO_TIME.pattern, raw) is not None
