"""Versions of tables of Delta Lake and Iceberg, found at the start, so that it can be repeated.

A version is a number of Delta Lake, or a snapshot's identifier of Iceberg.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ripple.core.errors import InputError
from ripple.core.extras import needed
from ripple.model.window.instant import instant_text
from ripple.spark.dataframe.places import SparkPlace
from ripple.spark.session import blaming

with needed("spark", "ripple.spark"):
    from pyspark.errors import AnalysisException
    from pyspark.sql.functions import col, unix_micros

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import DataFrame, SparkSession

_FORMS = ("delta", "iceberg")
_PART = re.compile(r"\w+|`[^`]+`")
_NAME = re.compile(rf"(?:{_PART.pattern})(?:\.(?:{_PART.pattern}))*")
_DELTA = "org.apache.spark.sql.delta."
_ICEBERG = "org.apache.iceberg.spark.source.SparkTable"


def pinned(spark: SparkSession, given: Any) -> Any:
    """Return a source, or several by name, with the present version of each table that is named.

    Raises InputError for a version or a time that a table does not have.
    """
    if isinstance(given, Mapping):
        return {name: pinned(spark, one) for name, one in given.items()}
    place = SparkPlace.of(given)
    if place is None or not (place.table or place.form == "delta"):
        return given
    with blaming():
        form = _form_of(spark, place)
        if form is None:
            return _without_version(place, given)
        if place.version is not None:
            return given
        return replace(place, version=_version(spark, place, form), at_ns=None).text


def sql_name(place: SparkPlace) -> str:
    """Return the name of a table in SQL. Raises InputError for a text that is none."""
    if place.table and not _NAME.fullmatch(place.table):
        raise InputError(
            f"{place.table!r} is not the name of a table: as in market.trades, with backquotes "
            "around other characters than letters, digits and _"
        )
    if not place.table:
        return "delta.`{}`".format(place.path.replace("`", "``"))
    # Quoted, for a name may be a word of SQL.
    return ".".join(f"`{one.strip('`')}`" for one in _PART.findall(place.table))


def versions_in(frame: DataFrame) -> tuple[str, ...]:
    """Return the tables of Delta Lake and Iceberg that a DataFrame reads, each with its version.

    Empty on Spark Connect, which does not tell them.
    """
    known: Any = getattr(frame, "_jdf", None)
    if known is None:
        return ()
    leaves = known.queryExecution().analyzed().collectLeaves()
    found = (_version_of(leaves.apply(at)) for at in range(leaves.length()))
    return tuple(dict.fromkeys(one.text for one in found if one is not None))


def check_unchanged(before: Collection[str], frame: DataFrame) -> None:
    """Raise InputError for a table with another version than before, as of ``versions_in``."""
    now = versions_in(frame)
    gone = next((one for one in sorted(before) if one not in now), None)
    if gone is not None:
        name = _name_in(gone)
        found = next((one for one in now if _name_in(one) == name), "another table")
        raise InputError(
            f"a table has changed between two readings: it was {gone}, and is {found} now. Name "
            f"the version that you mean as the source, as in '{gone}'"
        )


def _name_in(text: str) -> str:
    return text.partition(" VERSION AS OF ")[0]


def _version_of(leaf: Any) -> SparkPlace | None:
    kind = leaf.getClass().getSimpleName()
    if kind == "LogicalRelation" and _is_of_delta(leaf.relation()):
        files = leaf.relation().location()
        if _is_of_delta(files):
            version = int(files.getSnapshot().version())
            return SparkPlace(form="delta", path=str(files.path().toString()), version=version)
    if kind == "DataSourceV2Relation" and leaf.table().getClass().getName() == _ICEBERG:
        table = leaf.table()
        version, now = table.snapshotId(), table.table().currentSnapshot()
        if version is None and now is not None:
            version = now.snapshotId()
        return SparkPlace(table=str(table.table().name()), version=version)
    return None


def _is_of_delta(value: Any) -> bool:
    return str(value.getClass().getName()).startswith(_DELTA)


def _form_of(spark: SparkSession, place: SparkPlace) -> str | None:
    """Return the format of a table with versions, None for another one, or a missing one."""
    if not place.table:
        return "delta"
    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {sql_name(place)}").collect()
    except AnalysisException:  # it is refused when it is read
        return None
    named = [row.data_type for row in rows if row.col_name == "Provider"]
    return named[-1] if named and named[-1] in _FORMS else None


def _version(spark: SparkSession, place: SparkPlace, form: str) -> int | None:
    """Return the version at a time, or the present one; None for an Iceberg table without any."""
    name = sql_name(place)
    if form == "delta":
        history = spark.sql(f"DESCRIBE HISTORY {name}").select("version", "timestamp")
    else:
        history = spark.table(f"{name}.history").select("snapshot_id", "made_current_at")
    version, time = map(col, history.columns)
    rows = [tuple(row) for row in history.select(version, unix_micros(time)).collect()]
    if form == "delta":
        rows.sort()
    if place.at_ns is None:
        return rows[-1][0] if rows else None
    there = [row for row in rows if row[1] * 1000 <= place.at_ns]
    if not there:
        first = f": its first is of {instant_text(rows[0][1] * 1000)}" if rows else ""
        raise InputError(f"{place.text} had no version at {instant_text(place.at_ns)}{first}")
    return int(there[-1][0])


def _without_version(place: SparkPlace, given: str) -> str:
    if place.version is None and place.at_ns is None:
        return given
    raise InputError(
        f"{place.table} is no table of Delta Lake or Iceberg, or it is missing: others have no "
        "versions, so leave out VERSION AS OF and TIMESTAMP AS OF"
    )
