"""DataFrames of sources that are named by text, and that Spark reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ripple.core.errors import InputError
from ripple.core.extras import needed
from ripple.engine.operators.arrow_types import shown_fields
from ripple.spark.dataframe.places import SparkPlace
from ripple.spark.session import blaming
from ripple.task.arguments import sources_of

with needed("spark", "ripple.spark"):
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions
    from pyspark.sql.types import (
        BooleanType,
        DateType,
        DoubleType,
        LongType,
        StringType,
        StructField,
        StructType,
        TimestampType,
    )

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.model.pipeline.plan import Plan

_KINDS = {
    "date32[day]": DateType,
    "int64": LongType,
    "double": DoubleType,
    "bool": BooleanType,
    "string": StringType,
}


def frames_at(spark: SparkSession, plan: Plan, source: Any, *, header: bool) -> Any:
    """Return a source with DataFrames for the texts of places that Spark reads.

    header: whether files of CSV name their columns. Raises InputError for what is not there.
    """
    places = {name: SparkPlace.of(one) for name, one in sources_of(plan, source).items()}
    if not any(places.values()):
        return source
    given = sources_of(plan, source)
    found = {
        one.name: given[one.name] if place is None else _frame(spark, one, place, header=header)
        for one in plan.sources
        for place in [places[one.name]]
    }
    return found if isinstance(source, Mapping) else found[plan.source.name]


def _frame(spark: SparkSession, source: SourceSpec, at: SparkPlace, *, header: bool) -> DataFrame:
    with blaming():
        try:
            if at.table:
                found = spark.table(at.table)
            elif at.form == "csv":
                found = _texts(spark, source, at.path, header=header)
            else:
                found = spark.read.format(at.form).load(at.path)
            found.schema  # noqa: B018 - Spark Connect looks at it only now
            return found
        except AnalysisException as error:
            what = f"the table {at.table}" if at.table else at.path
            line = str(error).partition("\n")[0].partition(" SQLSTATE")[0]
            raise InputError(f"Spark cannot read {what}: {line}") from error


def _texts(spark: SparkSession, source: SourceSpec, path: str, *, header: bool) -> DataFrame:
    """Return files of CSV: by their columns' names, or in the order of the record's fields.

    What is no value of its field is null, so that its record is rejected.
    """
    kinds = {field.name: _kind_of(source, field.name) for field in source.fields}
    if not header:
        wanted = StructType([StructField(name, kind) for name, kind in kinds.items()])
        return spark.read.schema(wanted).csv(path)
    frame = spark.read.option("header", True).csv(path)
    columns = [
        functions.col(f"`{name}`").try_cast(kinds.get(name, StringType())).alias(name)
        for name in frame.columns
    ]
    return frame.select(*columns)


def _kind_of(source: SourceSpec, name: str) -> Any:
    checks = source.checks.get(name)
    form = None if checks is None else checks.time_form
    if form is not None and form.is_text:
        return TimestampType() if form.form == "iso" else StringType()
    (field,) = (one for one in shown_fields(source.fields) if one.name == name)
    return _KINDS[str(field.type)]()
