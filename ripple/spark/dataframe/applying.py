"""A pipeline as a step of ``df.transform``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripple.spark.replaying import replay

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from ripple.model.pipeline.builder import Pipeline
    from ripple.model.pipeline.plan import Plan


def apply(
    pipeline: str | os.PathLike[str] | Pipeline | Plan, **more: Any
) -> Callable[[DataFrame], DataFrame]:
    """Return a function from a DataFrame to the rows of a pipeline, for ``df.transform``.

    more: as for ``replay``.
    """

    def applied(frame: DataFrame) -> DataFrame:
        return replay(frame.sparkSession, pipeline, frame, **more)

    return applied
