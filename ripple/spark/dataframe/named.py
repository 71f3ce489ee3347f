"""DataFrames of sources that are named by text, and that Spark reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ripple.core.errors import InputError
from ripple.core.extras import needed
from ripple.engine.operators.arrow_types import shown_fields
from ripple.model.schema.types import DateTime, Logical, bare_type
from ripple.spark.dataframe.places import SparkPlace, check_files
from ripple.spark.dataframe.source_frame import column_of
from ripple.spark.dataframe.table_versions import sql_name
from ripple.spark.session import blaming
from ripple.task.arguments import sources_of

with needed("spark", "ripple.spark"):
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions
    from pyspark.sql.types import (
        BooleanType,
        DoubleType,
        LongType,
        StringType,
        StructField,
        StructType,
        TimestampType,
    )

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.model.pipeline.plan import Plan

# Spark's cast drops digits below a microsecond, and reads a text without a zone in the zone of the
# session: a record may have neither.
_ISO = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6}0*)?(Z|[+-]\d\d:\d\d)$"
_KINDS = {
    "int64": LongType,
    "double": DoubleType,
    "bool": BooleanType,
    "string": StringType,
}

_NO_FILES = "[UNABLE_TO_INFER_SCHEMA]"  # Spark's, of a folder without files of a format


def frames_at(spark: SparkSession, plan: Plan, source: Any, *, header: bool) -> Any:
    """Return a source with DataFrames for the texts of places that Spark reads.

    header: whether files of CSV name their columns. Raises InputError for a missing place.
    """
    given = sources_of(plan, source)
    places = {name: SparkPlace.of(one) for name, one in given.items()}
    if not any(places.values()):
        return source
    found = {
        one.name: given[one.name] if place is None else _frame(spark, one, place, header=header)
        for one in plan.sources
        for place in [places[one.name]]
    }
    return found if isinstance(source, Mapping) else found[plan.source.name]


def _frame(spark: SparkSession, source: SourceSpec, at: SparkPlace, *, header: bool) -> DataFrame:
    with blaming():
        try:
            if at.version is not None:
                past = f"{sql_name(at)} VERSION AS OF {at.version}"
                found = spark.sql(f"SELECT * FROM {past}")  # noqa: S608 - a checked name
            elif at.table:
                found = spark.table(at.table)
            elif at.form == "csv":
                found = _texts(spark, source, at.path, header=header)
            else:
                found = spark.read.format(at.form).load(at.path)
            found.schema  # noqa: B018 - Spark Connect looks at it only now
            if at.path and at.form != "delta":
                check_files(found.inputFiles(), at)
            return found
        except AnalysisException as error:
            what = f"the table {at.table}" if at.table else at.path
            line = str(error).partition("\n")[0].partition(" SQLSTATE")[0]
            if _NO_FILES in line:
                line = f"there are no files of {at.form}; another format is named before the path"
            raise InputError(f"Spark cannot read {what}: {line}") from error


def _texts(spark: SparkSession, source: SourceSpec, path: str, *, header: bool) -> DataFrame:
    """Return files of CSV: by their columns' names, or in the order of the record's fields.

    A text that is no value of its field is null, so that its record is rejected.
    """
    kinds = {field.name: _kind_of(source, field.name) for field in source.fields}
    read = spark.read.option("header", header)
    if not header:
        read = read.schema(StructType([StructField(name, StringType()) for name in kinds]))
    frame = read.csv(path)
    return frame.select(
        *(_cast(name, kinds.get(name, StringType())).alias(name) for name in frame.columns)
    )


def _cast(name: str, kind: DataType) -> Column:
    text = column_of(name)
    found = text.try_cast(kind)
    return functions.when(text.rlike(_ISO), found) if isinstance(kind, TimestampType) else found


def _kind_of(source: SourceSpec, name: str) -> DataType:
    """Return the type of a field's texts: a text, where the engine reads it, by the record's rules.

    Rows are in order of the event time, which therefore is a time already.
    """
    (field,) = (one for one in source.schema.fields if one.name == name)
    checks = source.checks.get(name)
    form = None if checks is None else checks.time_form
    is_iso = form is not None and form.form == "iso" and getattr(form, "zone", None) is None
    if name == source.time_field and (
        is_iso or (form is None and isinstance(bare_type(field.type), DateTime))
    ):
        return TimestampType()
    if (form is not None and form.is_text) or isinstance(bare_type(field.type), Logical):
        return StringType()
    (shown,) = (one for one in shown_fields(source.fields) if one.name == name)
    return _KINDS[str(shown.type)]()
