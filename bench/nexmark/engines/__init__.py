"""The engines compared: a script each, ``SCRIPT QUERY FOLDER OUT``.

A script reads the events of a folder, writes its result rows to a Parquet file, and prints the
processor seconds that both the reading and the query took, of all its threads, without imports.
``script`` is common to those that need no environment of their own.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.kafka_peers import python

HERE = Path(__file__).parent
ROOT = Path(__file__).parents[3]
WITHIN_S = 600


class EngineError(Exception):
    """A failure of an engine; the message has its last line."""


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine, by its script.

    cannot: queries not expressible in it, not written for it, or with different rows from run to
    run.
    is_peer: a Python stream processor, in a separate environment, with fewer events.
    """

    name: str
    script: str
    cannot: frozenset[str] = frozenset()
    is_peer: bool = False

    def run(self, query: str, folder: Path, out: Path) -> tuple[float, pa.Table]:
        """Return the processor seconds of a query, and its rows."""
        interpreter = python() if self.is_peer else sys.executable
        module = f"bench.nexmark.engines.{self.script}"
        script = [str(HERE / f"{self.script}.py")] if self.is_peer else ["-m", module]
        try:
            ended = subprocess.run(
                [interpreter, *script, query, str(folder), str(out)],
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=WITHIN_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise EngineError(f"{self.name} takes more than {WITHIN_S} s for {query}") from error
        if ended.returncode:
            last = (ended.stderr.strip().splitlines() or ["?"])[-1]
            raise EngineError(f"{self.name} fails in {query}: {last}")
        return float(ended.stdout.split()[-1]), pq.read_table(out)


JOINS = frozenset({"q3", "q4", "q6", "q8", "q9", "q13", "q20", "q23"})
RIPPLE = Engine("Ripple", "ripple_engine")
OTHERS = (
    Engine("DuckDB", "duckdb_engine"),
    Engine("Polars", "polars_engine", cannot=JOINS),
    Engine("Bytewax", "bytewax_engine", cannot=JOINS, is_peer=True),
    Engine("Pathway", "pathway_engine", cannot=JOINS | {"q18", "q19"}, is_peer=True),
)
