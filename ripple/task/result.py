"""The result of a run in Python: the rows of its outputs, its report and rejected records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ripple.core.errors import OutputError
from ripple.model.schema.python_rows import python_rows
from ripple.task.compared import Row, are_same, rows_of

if TYPE_CHECKING:
    import pyarrow as pa

    from ripple.task.report import Report

_SHOWN_ROWS = 20


class Result:  # noqa: PLW1641 - equal rows are equal, and it has no hash
    """The rows of a pipeline's outputs at the end of a run, as Arrow tables.

    With one output it is a table itself: for ``pa.table``, Polars, DuckDB and other readers of
    ``__arrow_c_stream__``, and an iterable of its rows. Of several, ``result[name]`` is that of
    one. The rows are each key's last one, by key; an output of events has all its rows, in
    order. ``changes`` has all changes, if the run kept them.

    report: of the run, None if there is none. rejected: the rejected records, a table of the
    source, offset, line number, file, reason and record; ``report.rejected`` counts them all.
    """

    def __init__(
        self,
        tables: Mapping[str, pa.Table],
        *,
        changes: Mapping[str, pa.Table] | None = None,
        report: Report | None = None,
        rejected: pa.Table | None = None,
    ) -> None:
        """Take the tables of one or more outputs, by name."""
        self._tables = dict(tables)
        self._changes = changes
        self.report = report
        self.rejected = rejected

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs."""
        return tuple(self._tables)

    def __getitem__(self, output: str) -> Result:
        """Return the result of one output. Raises OutputError for an unknown one."""
        if output not in self._tables:
            raise OutputError(
                f"the result has no output {output!r}: it has {', '.join(self._tables)}"
            )
        changes = None if self._changes is None else {output: self._changes[output]}
        table = {output: self._tables[output]}
        return Result(table, changes=changes, report=self.report, rejected=self.rejected)

    @property
    def _only(self) -> str:
        """The only output; raises OutputError where there are several."""
        if len(self._tables) != 1:
            first = next(iter(self._tables), "")
            raise OutputError(
                f"the result has the outputs {', '.join(self._tables)}: choose one, as in "
                f"result[{first!r}]"
            )
        return next(iter(self._tables))

    def table(self) -> pa.Table:
        """Return the rows: each key's last one, by key, or all of an output of events."""
        return self._tables[self._only]

    def changes(self) -> pa.Table:
        """Return all changes in order, with ``op`` as text. Raises OutputError if none were kept.

        Which of them there are depends on ``batch_rows``: one at most for a key and a batch.
        """
        only = self._only
        if self._changes is None:
            raise OutputError(
                f"the changes of {only!r} were not kept: write rp.collect(..., changes=True)"
            )
        return self._changes[only]

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows as dicts."""
        return list(python_rows(self.table()))

    def to_pandas(self, **arguments: Any) -> Any:
        """Return the rows as a frame of pandas. arguments: of ``pyarrow.Table.to_pandas``."""
        return self.table().to_pandas(**arguments)

    def to_polars(self) -> Any:
        """Return the rows as a frame of Polars."""
        return import_module("polars").DataFrame(self.table())  # it is no dependency

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as a stream of Arrow."""
        return self.table().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Return the schema of the rows."""
        return self.table().schema.__arrow_c_schema__()

    def __eq__(self, other: object) -> bool:
        """Return whether these are the rows of another result, a list of dicts or a table.

        In their order; that of columns does not matter, and NaN is NaN. A result of several outputs
        is equal to one of the same outputs.
        """
        if isinstance(other, Result):
            if self.outputs != other.outputs:
                return False
            pairs = [(self[name]._held(), other[name]._held()) for name in self.outputs]
        else:
            rows = rows_of(other)
            if rows is None:
                return NotImplemented
            pairs = [(self._held(), rows)]
        return all(len(one) == len(two) and are_same(one, two) for one, two in pairs)

    def _held(self) -> list[Row]:
        return [*self.rows()]

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.table().num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as dicts."""
        for batch in self.table().to_batches(max_chunksize=1000):
            yield from python_rows(batch)

    def __repr__(self) -> str:
        """Return the numbers of rows."""
        shown = ", ".join(f"{name}: {one.num_rows:,} rows" for name, one in self._tables.items())
        return f"<Result {shown or 'without outputs'}{self._lost}>"

    def _repr_html_(self) -> str:
        """Return the first rows of each output, for notebooks."""
        return "".join(_html_of(name, one) for name, one in self._tables.items()) + (
            f"<p>{escape(self._lost[2:])}</p>" if self._lost else ""
        )

    @property
    def _lost(self) -> str:
        """The numbers of rejected and very late records, as a text; "" for none."""
        if self.report is None:
            return ""
        rejected, late = self.report.rejected.total(), self.report.very_late
        parts = [f"{rejected:,} rejected"] * bool(rejected) + [f"{late:,} too late"] * bool(late)
        return f"; of {self.report.consumed:,} records {', '.join(parts)}" if parts else ""


def _html_of(name: str, table: pa.Table) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in table.column_names)
    rows = "".join(
        "<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row.values()) + "</tr>"
        for row in python_rows(table.slice(0, _SHOWN_ROWS))
    )
    more = f", of which the first {_SHOWN_ROWS}" if table.num_rows > _SHOWN_ROWS else ""
    return (
        f"<table><caption>{escape(name)}: {table.num_rows:,} rows{more}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )


def _cell(value: object) -> str:
    return "" if value is None else escape(str(value))
