"""Pathway: both sides as a stream, a commit for each batch; the changes of its result in a file.

``PYTHON pathway_joins.py KIND FOLDER`` reads ``left.parquet`` and ``right.parquet``, in which
``__time__`` says of which commit a row is; it writes ``out.csv`` and prints processor seconds.
"""

import sys
import time
from pathlib import Path

import pandas as pd
import pathway as pw


def asof(left, right):
    found = left.asof_join(
        right, left.at_ns, right.at_ns, left.symbol == right.symbol, how=pw.JoinMode.LEFT
    )
    return found.select(left.trade, right.bid, right.ask)


def interval(left, right):
    near = pw.temporal.interval(-200_000_000, 200_000_000)
    found = left.interval_join(right, left.at_ns, right.at_ns, near, left.user == right.user)
    return found.select(left.number, right.click, right.weight)


def by_key(left, right):
    held, most = newest(left, "desk", "held"), newest(right, "most")
    found = held.join(most, held.key == most.key, how=pw.JoinMode.LEFT)
    return found.select(held.key, held.desk, held.held, most.most)


def newest(rows, *fields):
    last = rows.groupby(rows.key).reduce(rows.key, at=pw.reducers.argmax(rows.place))
    row = rows.ix(last.at)
    return last.select(last.key, **{name: row[name] for name in fields})


def main(kind: str, folder: Path) -> None:
    sides = (
        pw.debug.table_from_pandas(pd.read_parquet(folder / f"{side}.parquet"))
        for side in ("left", "right")
    )
    joined = {"asof": asof, "interval": interval, "by_key": by_key}[kind](*sides)
    pw.io.csv.write(joined, str(folder / "out.csv"))
    began = time.process_time()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    print(time.process_time() - began)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
