"""The streaming peers of joins: Pathway over the same batches, as a stream.

Rows are compared before a time counts, and no two times of one key are equal, since Pathway decides
ties otherwise. Quix Streams is not among them: it reads topics of Kafka alone, a message at a time
(``python -m bench kafka_pipeline`` has it beside Ripple there).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from bench import kafka_peers
from bench.row import Row, at_least
from bench.timing import QUICK, cpu_in_turns
from bench.two_streams import RIGHTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).parent
LEFT = 1_000 if QUICK else 5_000  # rows of the left side, of which Pathway takes seconds
BATCH = 1_000
TIMES = at_least(100, of_ratio=True)
WITHIN_S = 120
ABSENT = (
    "Quix Streams has no row: it reads topics of Kafka alone, a message at a time",
    "Pathway has no row: {}",
)


def beside(
    kind: str, name: str, sides: dict[str, pa.Table], ours: Callable[[], pa.Table]
) -> Iterator[Row]:
    """Yield our records a second of a core beside those of Pathway; why not, on stderr.

    ours: returns the rows of the result, which are compared as sets.
    """
    print(f"{name}: {ABSENT[0]}", file=sys.stderr)
    try:
        seconds, theirs = _pathway(kind, sides)
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        print(f"{name}: {ABSENT[1].format(error)}", file=sys.stderr)
        return
    found = ours()
    assert _listed(found) == _listed(theirs.select(found.column_names)), f"{name}: other rows"
    count = sum(side.num_rows for side in sides.values())
    own = count / cpu_in_turns({"": ours}, 3)[""]
    yield Row(f"{name}, batches of {BATCH:,}", own, "records/s", "Pathway", count / seconds, TIMES)


def untied(sides: dict[str, pa.Table], time: str = "at_ns") -> dict[str, pa.Table]:
    """Return the first rows of both sides, their times so far apart that no two are equal."""
    found = {}
    for number, (name, rows) in enumerate(sides.items()):
        some = rows.slice(0, LEFT * (RIGHTS if number else 1))
        times = some.column(time).to_numpy() + 2 * np.arange(some.num_rows) + number
        found[name] = some.set_column(some.column_names.index(time), time, pa.array(times))
    return found


def _pathway(kind: str, sides: dict[str, pa.Table]) -> tuple[float, pa.Table]:
    """Return the processor seconds of Pathway, and the rows of its result at the end."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, (file, rows) in enumerate(zip(("left", "right"), sides.values(), strict=True)):
            at = np.arange(rows.num_rows)
            commits = at // (BATCH * (RIGHTS if number else 1)) * 2
            with_times = rows.append_column("__time__", pa.array(commits))
            pq.write_table(
                with_times.append_column("place", pa.array(at)), folder / f"{file}.parquet"
            )
        ended = subprocess.run(
            [kafka_peers.python(), str(HERE / "pathway_joins.py"), kind, name],
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
        if ended.returncode:
            raise RuntimeError((ended.stderr.strip().splitlines() or ["?"])[-1])
        options = pa.csv.ConvertOptions(null_values=["None"])
        changes = pa.csv.read_csv(folder / "out.csv", convert_options=options)
    return float(ended.stdout.split()[-1]), at_the_end(changes)


def at_the_end(changes: pa.Table) -> pa.Table:
    """Return the rows that are left of changes with ``diff`` 1 and -1."""
    names = [name for name in changes.column_names if name not in ("time", "diff")]
    totals = changes.group_by(names).aggregate([("diff", "sum")])
    return totals.filter(pa.compute.greater(totals.column("diff_sum"), 0)).select(names)


def _listed(rows: pa.Table) -> list[tuple[object, ...]]:
    return sorted(zip(*(column.to_pylist() for column in rows.columns), strict=True), key=repr)
