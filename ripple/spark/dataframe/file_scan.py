"""DataFrames of unchanged Parquet files: tasks read these without Spark's rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from ripple.core.errors import SchemaError
from ripple.model.keys.partitioner import key_bytes
from ripple.spark.dataframe.division import uuids_in
from ripple.spark.dataframe.paths import quoted
from ripple.spark.dataframe.scan import scan_of
from ripple.spark.options import NOWHERE
from ripple.spark.sources import arrow_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.spark.dataframe.scan import Scan
    from ripple.spark.dataframe.source_frame import SourceFrame
    from ripple.spark.options import Bound

TASKS_MAX = 16
"""Tasks of a scan at most: each reads all rows, and beyond it a shuffle is cheaper."""
_KEPT = ("Project", "SubqueryAlias", "View")


def files_scan(
    one: SourceFrame,
    key: Sequence[str],
    tasks: int,
    start: Bound,
    stop: Bound,
    *,
    few_rows: int = 0,
) -> Scan | None:
    """Return the files of a source as a scan; None where Spark must read or sort its rows.

    one: without the range of time of ``start`` and ``stop``. few_rows: as many at most are read by
    one task, whatever ``tasks`` says.
    """
    if tasks > TASKS_MAX and not few_rows:
        return None
    scan = _scan(one, key, min(tasks, TASKS_MAX))
    if scan is None:
        return None
    bounds = [
        None
        if bound == NOWHERE or bound.time_ns is None
        else one.number_at(scan.order[0], bound.time_ns)
        for bound in (start, stop)
    ]
    scan = scan if bounds == [None, None] else scan.within(*bounds)
    whole = scan.by_one_task(few_rows) if few_rows else None
    return whole or (scan if tasks <= TASKS_MAX else None)


def _scan(one: SourceFrame, key: Sequence[str], tasks: int) -> Scan | None:
    time = one.source.time_field
    paths = None if time is None else _paths(one.frame)
    if not paths or time is None:
        return None
    given = one.given
    fields = {name: column for name, column in given.columns if name in one.frame.columns}
    if len(fields) < len(given.columns):  # members of structs
        return None
    chosen = one.frame.select(*map(quoted, dict.fromkeys([*fields, *given.order_by])))
    kinds = arrow_schema(chosen.schema)
    types = {field.name: field.type for field in kinds}
    divides = tuple(key) if tasks > 1 else ()
    if divides and not _is_divided_by(kinds.empty_table().select(divides)):
        return None
    return scan_of(
        paths,
        types,
        order=(time, *given.order_by, *given.tied_fields(one.source, key)),
        names={column: name for name, column in fields.items()},
        key=divides,
        uuids=uuids_in(one.source, divides),
        tasks=tasks,
    )


def _is_divided_by(rows: Any) -> bool:
    try:
        key_bytes(rows, rows.column_names)
    except SchemaError:
        return False
    return True


def _paths(frame: Any) -> list[str] | None:
    """Return the files of a DataFrame of only their columns; None for another one."""
    known = getattr(frame, "_jdf", None)  # of no Spark Connect
    if known is None:
        return None
    plan = known.queryExecution().optimizedPlan()
    while _kind(plan) in _KEPT:
        if _kind(plan) == "Project" and not _has_columns_only(plan.projectList()):
            return None
        plan = plan.child()
    if _kind(plan) != "LogicalRelation" or _kind(plan.relation()) != "HadoopFsRelation":
        return None
    relation = plan.relation()
    if _kind(relation.fileFormat()) != "ParquetFileFormat":
        return None
    if relation.partitionSchema().length() or relation.bucketSpec().isDefined():
        return None
    uris = [urlparse(uri) for uri in relation.location().inputFiles()]
    if any(uri.scheme not in ("", "file") or uri.netloc for uri in uris):
        return None
    return [unquote(uri.path) for uri in uris]


def _kind(value: Any) -> str:
    return str(value.getClass().getSimpleName())


def _has_columns_only(expressions: Any) -> bool:
    return all(
        _kind(expressions.apply(at)) == "AttributeReference" for at in range(expressions.length())
    )
