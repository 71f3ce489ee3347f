"""Changes of an output into a table of Spark by MERGE, as Delta and Iceberg have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ripple.core.errors import InputError, OutputError
from ripple.core.extras import needed
from ripple.core.row_ops import OP, OP_NAMES, OP_REMOVE
from ripple.engine.operators.arrow_types import shown_fields
from ripple.spark.dataframe.paths import quoted
from ripple.spark.log_table import OFFSET
from ripple.spark.parcel import check_plan, plan_of

with needed("spark", "ripple.spark"):
    from pyspark.sql import functions

if TYPE_CHECKING:
    import os

    from pyspark.sql import DataFrame

    from ripple.model.pipeline.builder import Pipeline
    from ripple.model.pipeline.plan import Plan

_VIEW = "ripple_changes"


def merge_into(
    table: str,
    pipeline: str | os.PathLike[str] | Pipeline | Plan,
    *,
    output: str | None = None,
) -> Merge:
    """Return a function for ``foreachBatch`` that keeps a table at the rows of an output.

    table: a name as in SQL, such as ``main.vwap``, or ``delta.`/data/vwap```, with the columns of
    the output. output: needed where there are several. The stream is ``ripple.log`` of the output's
    log. A micro-batch that is repeated changes nothing. Raises PlanError and OutputError.
    """
    plan = plan_of(pipeline)
    check_plan(plan, has_markers=True, has_tables=True, has_answers=True)
    if output is None and len(plan.outputs) > 1:
        names = ", ".join(one.name for one in plan.outputs)
        raise OutputError(f"the pipeline has the outputs {names}: choose one, output=")
    chosen = plan.outputs[0] if output is None else plan.output(output)
    key = tuple(one.name for one in plan.key_of(chosen))
    if chosen.is_stream:
        raise OutputError(
            f"{chosen.name} has events, which have no key to merge by: append them, as with "
            "writeStream.toTable"
        )
    return Merge(table, key, tuple(one.name for one in shown_fields(chosen.fields)))


@dataclass(frozen=True, slots=True)
class Merge:
    """Merges a micro-batch of changes into a table.

    key: fields that identify a row; () where there is one row. columns: of the table that are
    written. A row's key is in one partition of the log, so its last change has the highest offset.
    """

    table: str
    key: tuple[str, ...]
    columns: tuple[str, ...]

    def __call__(self, changes: DataFrame, _: int) -> None:
        """Merge the last change of each key."""
        missing = [one for one in (OP, OFFSET, *self.columns) if one not in changes.columns]
        if missing:
            raise InputError(
                f"the changes have no column {missing[0]!r}: read the log of the output, "
                "spark.readStream.format('ripple.log'), with all of its columns"
            )
        names = [OP, *self.columns]
        last = functions.max_by(functions.struct(*map(quoted, names)), OFFSET).alias("last")
        rows = changes.groupBy(*map(quoted, self.key)).agg(last)
        rows.select("last.*").createOrReplaceTempView(_VIEW)
        spark: Any = changes.sparkSession
        spark.sql(self.statement())

    def statement(self) -> str:
        """Return the statement, from the view of the changes."""
        names = [quoted(one) for one in self.columns]
        same = [f"t.{one} <=> s.{one}" for one in map(quoted, self.key)]
        removes = f"s.{OP} = '{OP_NAMES[OP_REMOVE]}'"
        sets = ", ".join(f"t.{one} = s.{one}" for one in names)
        values = ", ".join(f"s.{one}" for one in names)
        return (  # the table is the caller's, the names are of the pipeline
            f"MERGE INTO {self.table} t USING {_VIEW} s ON {' AND '.join(same) or 'true'} "  # noqa: S608
            f"WHEN MATCHED AND {removes} THEN DELETE "
            f"WHEN MATCHED THEN UPDATE SET {sets} "
            f"WHEN NOT MATCHED AND NOT {removes} "
            f"THEN INSERT ({', '.join(names)}) VALUES ({values})"
        )
