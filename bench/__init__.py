"""What things cost, each figure beside its comparison from the same run: ``python -m bench``.

A benchmark is a module with ``measure() -> list[Row]``. Each runs in a process of its own, so
that one's memory and threads do not disturb the next.
"""

from __future__ import annotations

BENCHMARKS = (
    "end_to_end",
    "engine_batches",
    "pipelines",
    "nexmark",
    "stages",
    "exchange",
    "barrage",
    "cluster",
    "moves",
    "deaths",
    "beats",
    "latency",
    "memory",
    "longest_turn",
    "beside_a_loop",
    "market",
    "ordered",
    "scans",
    "books",
    "joins",
    "interval",
    "asof",
    "asof_files",
    "b01_cells",
    "b01_columns",
    "b02_wire",
    "b03_delta",
    "b05_replay",
    "b06_schema",
    "newcomer",
    "aggregates",
    "expressions",
    "types",
    "io",
    "kafka_reading",
    "kafka_writing",
    "kafka_pipeline",
    "kafka_uncommitted",
    "kafka_moves",
    "checkpoint",
    "log",
    "recovery",
    "ring",
    "spark",
)
