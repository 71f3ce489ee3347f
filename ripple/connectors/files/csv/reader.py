"""Blocks of CSV lines to batches: columns by name, reasons, lines and offsets counted."""

from __future__ import annotations

import codecs
import csv
from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.connectors.column_names import meant
from ripple.connectors.files.csv.format import CsvFormat
from ripple.connectors.files.csv.parser import CsvParser
from ripple.connectors.record_shape import TYPE_WORDS, value_type
from ripple.core.errors import InputError
from ripple.model.batch import RAW_BYTES_MAX, Batch, Rejected
from ripple.model.schema.checks import Checks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ripple.connectors.files.csv.parser import ParserColumn
    from ripple.model.schema.types import Field

_NO_CHECKS = Checks()
# In the order of the parser's verdicts. Few and without the value seen, so that they count well.
REASONS = (
    "good",
    "line is longer than {length_bytes_max} bytes",
    "line is not valid UTF-8",
    "line contains a NUL byte",
    "too few fields",
    "too many fields",
    "{field} is badly quoted",
    "{field} is empty",
    "{field} is not {type}",
    "{field} does not fit in 64 bits",
    "{field} is too large for a float",
    "{field} is too close to 0 for a float",
    "{field} is not finite",
    "{field} is not {range}",
    "{field} is not {length}",
)


class CsvReader:
    """Turns blocks of lines into batches. ``input_name`` is for messages."""

    def __init__(self, csv_format: CsvFormat, input_name: str, line_length_bytes_max: int) -> None:
        self._format = csv_format
        self._input_name = input_name
        self._line_length_bytes_max = line_length_bytes_max
        self._schema = csv_format.arrow_schema()
        self._members: list[Field | None] = []
        self._parser: CsvParser | None = None
        # Lines before a header are not the parser's.
        ahead = csv_format.comments == "ahead"
        self._comments = "none" if ahead and csv_format.header else csv_format.comments
        self._started = False
        self._open = b""  # of a record that may go on in the next block
        self._lines = 0
        self._offset = 0
        if not csv_format.header:
            self._lay_out([member.name for member in csv_format.schema.fields])

    def read(self, blocks: Iterable[memoryview | None]) -> Iterator[Batch | None]:
        """Yield a batch for each block that holds records, and None where the input pauses."""
        try:
            for block in blocks:
                if block is None:
                    yield None
                    continue
                start = self._start(block)
                if self._parser is not None:
                    yield from self._parse(self._parser, block[start:], final=False)
        except InputError:
            yield from self._flush()
            raise
        yield from self._flush()

    def _start(self, block: memoryview) -> int:
        """Return the position of the first line after the byte order mark and the header."""
        start = 0
        if not self._started:
            self._started = True
            if bytes(block[: len(codecs.BOM_UTF8)]) == codecs.BOM_UTF8:
                start = len(codecs.BOM_UTF8)
        return start if self._parser is not None else start + self._read_header(block[start:])

    def _flush(self) -> Iterator[Batch]:
        if self._parser is not None and self._open:
            yield from self._parse(self._parser, memoryview(b""), final=True)

    def _parse(self, parser: CsvParser, block: memoryview, *, final: bool) -> Iterator[Batch]:
        """Yield the records that ``block`` completes, as a batch if there are any."""
        if self._open:
            block = memoryview(self._open + block)
        rows, lines, arrays, verdicts, used = parser.parse(block, final=final)
        self._open = bytes(block[used:])
        rejected = tuple(
            Rejected(
                self._offset + record,
                self._lines + line + 1,
                self._reason(verdict, column),
                bytes(block[start : start + min(length, RAW_BYTES_MAX)]),
            )
            for record, line, start, length, verdict, column in verdicts
        )
        self._lines += lines
        self._offset += rows + len(rejected)
        if not rows and not rejected:
            return
        found = dict(zip(self._delivered, arrays, strict=True))
        columns = [
            found[column.name] if column.name in found else pa.nulls(rows, column.type)
            for column in self._schema
        ]
        records = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        yield Batch(records, self._offset, rejected)

    def _reason(self, verdict: int, column: int) -> str:
        member = self._members[column] if column >= 0 else None
        if member is None:
            return REASONS[verdict].format(
                length_bytes_max=self._line_length_bytes_max, field="a field"
            )
        checks = self._format.checks.get(member.name, _NO_CHECKS)
        return REASONS[verdict].format(
            field=member.name,
            type="a number"
            if member.name in self._format.digits
            else TYPE_WORDS[value_type(member)[0]],
            range=checks.range_words,
            length=checks.length_words,
        )

    def _read_header(self, block: memoryview) -> int:
        """Lay out the columns by the block's first line that is no comment; return where it ends.

        When the block has no such line, the parser stays None.
        """
        start = 0
        while start < len(block):
            text, _, _ = bytes(block[start:]).partition(b"\n")
            start += len(text) + 1
            self._lines += 1
            line = text.removesuffix(b"\r")
            if line and not line.startswith(b"#"):
                try:
                    self._lay_out(
                        next(
                            csv.reader(
                                [line.decode()],
                                strict=True,
                                delimiter=self._format.dialect.delimiter,
                            )
                        )
                    )
                except (UnicodeDecodeError, csv.Error) as error:
                    raise InputError(
                        f"the header of {self._input_name} is not readable: {error}"
                    ) from error
                break
        return start

    def _lay_out(self, names: list[str]) -> None:
        """Prepare for lines with the columns ``names``, in this order."""
        members = {member.name: member for member in self._format.schema.fields}
        for name, member in members.items():
            if names.count(name) > 1:
                raise InputError(f"the header of {self._input_name} has column {name!r} twice")
            if name not in names and not value_type(member)[1]:
                hint = self._divided_by(name, names) or meant(name, names)
                raise InputError(
                    f"the header of {self._input_name} has no column {name!r}: "
                    f"it has {', '.join(names)}{hint}"
                )
        wanted = set(self._schema.names)
        self._members = [members.get(name) for name in names]
        self._delivered = [name for name in names if name in wanted]
        dialect = self._format.dialect
        self._parser = CsvParser(
            [self._parser_column(member, wanted) for member in self._members],
            self._line_length_bytes_max,
            self._comments,
            delimiter=dialect.delimiter,
            decimal=dialect.decimal,
            thousands=dialect.thousands,
            nulls=dialect.nulls,
        )

    def _divided_by(self, name: str, names: list[str]) -> str:
        """Return a hint where another delimiter makes a column of one that is missing, or ""."""
        for delimiter, word in ((";", ";"), ("\t", "tab"), ("|", "|"), (",", ",")):
            if any(meant(name, one.split(delimiter)) for one in names if delimiter in one):
                return f" (is it divided otherwise? '{self._input_name}?delimiter={word}' reads it)"
        return ""

    def _parser_column(self, member: Field | None, wanted: set[str]) -> ParserColumn:
        """Describe a column to the parser; an undeclared column is any text."""
        if member is None:
            return (pa.string(), False, True, False, None, _NO_CHECKS.lengths, False)
        kind, optional = value_type(member)
        is_wanted, is_number = member.name in wanted, member.name in self._format.digits
        checks = self._format.checks.get(member.name)
        if checks is None:
            return (kind, is_wanted, optional, False, None, _NO_CHECKS.lengths, is_number)
        interval = checks.interval if checks.is_bounded else None
        return (kind, is_wanted, optional, checks.finite, interval, checks.lengths, is_number)
