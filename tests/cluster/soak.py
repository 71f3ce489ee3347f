"""A cluster under steady load for hours: does anything grow that should not?

    python -m tests.cluster.soak --hours 2

Records come at a steady rate, one in a hundred is refused, and nothing else happens. Memory,
descriptors, threads, processor time and disk are noted by process; in the end the second quarter of
the time is compared with the last: by then each key has been seen, and tables and buffers are full.
Dead letters are counted separately.
Writes soak.csv and soak.svg, and returns 1 if something has grown.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pyarrow as pa

from ripple.storage.log import Topic
from ripple.storage.log.body import columns_of
from ripple.storage.log.router import TopicWriter
from ripple.world import LiveClock, LiveDisk
from tests.cluster.chaos import START_NS, job_of
from tests.cluster.cluster import Cluster, Job, children_of, cluster
from tests.cluster.plot import Series, svg
from tests.patience import PATIENCE_S

EVERY_S = 10.0
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
SPARE_THREADS = 4  # of a process that waits for work
TICKS_S = os.sysconf("SC_CLK_TCK")
MIB = 1 << 20
# The growth allowed from the second quarter to the last, as a ratio and as a number: descriptors
# and threads of a pool come and go. Objects of dead letters are merged beyond a limit, so their
# number rises and falls: the soak shows it, and the limit has its own test.
GROWTH_MAX = 1.10
SPARE = {
    "memory MiB": 4.0,
    "descriptors": 8.0,
    "threads": 4.0,
    "bytes a record": 8.0,
    "files": 40.0,  # of the store without dead letters
}


@dataclass(frozen=True, slots=True)
class Plan:
    """A load. rate: records a second. refused: one record in so many."""

    hours: float = 2.0
    rate: int = 150
    keys: int = 5_000
    refused: int = 100
    workers: int = 2
    partitions: int = 8


Sample = dict[tuple[str, str], float]
"""Numbers by kind and by process or folder."""


class Load:
    """Appends records as time passes: as many as are due."""

    def __init__(self, path: Path, plan: Plan) -> None:
        self._topic = Topic.open(LiveDisk(str(path.parent)), path.name)
        self._writer = TopicWriter(self._topic, LiveClock(), holder="soak")
        self._plan, self._chance = plan, np.random.default_rng(0)
        self.records = 0

    def append(self, due: int) -> None:
        """Append until there are so many records."""
        rows = due - self.records
        if rows <= 0:
            return
        numbers, chance = np.arange(self.records, due), self._chance
        columns = {
            "symbol": [f"SYM{key:05}" for key in chance.integers(0, self._plan.keys, rows)],
            "price": np.round(100 + chance.normal(0, 5, rows), 2),
            "size": np.where(numbers % self._plan.refused, chance.integers(1, 1000, rows), 0),
            "timestamp_ns": START_NS + numbers * (1_000_000_000 // self._plan.rate),
            "venue": ["XNAS"] * rows,
        }
        for batch in pa.table(columns, schema=columns_of(self._topic.schema)).to_batches():
            self._writer.append(batch)
        self.records = due

    def close(self) -> None:
        """Close the topic."""
        self._writer.close()


async def soak(plan: Plan, folder: Path, say: Callable[[str], None]) -> list[tuple[float, Sample]]:
    """Return a sample for each ten seconds, with its time in seconds."""
    job = job_of("totals", folder, plan.partitions)
    samples: list[tuple[float, Sample]] = []
    load, began_s = Load(job.source, plan), time.monotonic()
    end_s = plan.hours * 3600
    async with cluster(job, folder / "state", workers=plan.workers, processes_each=1) as up:
        try:
            while (now_s := time.monotonic() - began_s) < end_s:
                await asyncio.to_thread(load.append, int(now_s * plan.rate))
                if now_s >= EVERY_S * (len(samples) + 1):
                    taken = await asyncio.to_thread(_sample, up, job, folder, load.records)
                    samples.append((now_s, taken))
                    if len(samples) % 30 == 0:
                        say(f"{now_s / 60:.0f} of {end_s / 60:.0f} min: {_brief(taken)}")
                await asyncio.sleep(0.2)
        finally:
            load.close()
        waited_s = await up.caught_up(PATIENCE_S)
    say(f"{load.records:,} records; caught up {waited_s:.1f} s after the last")
    return samples


def _sample(up: Cluster, job: Job, folder: Path, records: int) -> Sample:
    found: Sample = {}
    for name, process in up.processes.items():
        for pid in (process.pid, *children_of(process.pid)) if process.pid else ():
            found.update(_of_process(name if pid == process.pid else f"{name} {_role(pid)}", pid))
    for name, where in (("outputs", job.folder), ("store", folder / "state")):
        size, files = _size(where)
        found["bytes a record", name] = size / max(records, 1)
        found["files", name] = files
        found["MiB on disk", name] = size / MIB
    kinds = _kinds(folder / "state")
    found["files of dead letters", "store"] = kinds.pop("letters", 0)
    found["files", "store"] = kinds.total()
    found.update({("files by kind", kind): files for kind, files in kinds.items()})
    return found


def _role(pid: int) -> str:
    """Return the role of a child: one that waits for work has few threads."""
    with suppress(OSError):
        return (
            "engine" if len(list(Path(f"/proc/{pid}/task").iterdir())) > SPARE_THREADS else "spare"
        )
    return "spare"


def _of_process(name: str, pid: int) -> Iterator[tuple[tuple[str, str], float]]:
    with suppress(OSError):
        own = Path(f"/proc/{pid}")
        yield ("memory MiB", name), int((own / "statm").read_text().split()[1]) * PAGE_BYTES / MIB
        yield ("descriptors", name), len(list((own / "fd").iterdir()))
        yield ("threads", name), len(list((own / "task").iterdir()))
        times = (own / "stat").read_text().rpartition(")")[2].split()
        yield ("CPU s", name), (int(times[11]) + int(times[12])) / TICKS_S


def _size(folder: Path) -> tuple[int, int]:
    size = files = 0
    for path in folder.rglob("*"):
        with suppress(OSError):  # it may go meanwhile
            if path.is_file():
                size, files = size + path.stat().st_size, files + 1
    return size, files


def _kinds(folder: Path) -> Counter[str]:
    """Return the number of files by kind, which is the name of their folder."""
    kinds: Counter[str] = Counter()
    for parent, _, names in os.walk(folder):
        kinds[Path(parent).name] += len(names)
    return +kinds


def _brief(sample: Sample) -> str:
    return ", ".join(
        f"{name} {value:.0f} {kind}"
        for (kind, name), value in sample.items()
        if kind in ("memory MiB", "MiB on disk")
    )


def grown(samples: list[tuple[float, Sample]]) -> list[str]:
    """Return a line for each number that is larger in the last quarter than in the second."""
    quarter = len(samples) // 4
    early, late = samples[quarter : 2 * quarter], samples[-quarter:]
    found = []
    for kind, name in late[-1][1] if late else ():
        before = [one[kind, name] for _, one in early if (kind, name) in one]
        after = [one[kind, name] for _, one in late if (kind, name) in one]
        if kind not in SPARE or not before or not after:
            continue
        was, now = statistics.median(before), statistics.median(after)
        if now > max(was * GROWTH_MAX, was + SPARE[kind]):
            found.append(f"{name}: {was:.1f} → {now:.1f} {kind}")
    return found


def cpu_of(samples: list[tuple[float, Sample]], rate: int) -> Mapping[str, float]:
    """Return the processor milliseconds a record of each process, behind the first quarter."""
    (from_s, first), (to_s, last) = samples[len(samples) // 4], samples[-1]
    records = (to_s - from_s) * rate
    return {
        name: 1000 * (value - first["CPU s", name]) / records
        for (kind, name), value in last.items()
        if kind == "CPU s" and ("CPU s", name) in first
    }


def write(samples: list[tuple[float, Sample]], folder: Path) -> None:
    """Write the samples, and their drawing."""
    names = list(dict.fromkeys(key for _, one in samples for key in one))
    with (folder / "soak.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["seconds", *(f"{name}: {kind}" for kind, name in names)])
        for at_s, one in samples:
            row = [one.get(name) for name in names]
            table.writerow([f"{at_s:.0f}", *("" if v is None else f"{v:.2f}" for v in row)])
    charts: dict[str, list[Series]] = {}
    for kind, name in names:
        points = [(at_s / 60, one[kind, name]) for at_s, one in samples if (kind, name) in one]
        charts.setdefault(kind, []).append(Series(name, points))
    (folder / "soak.svg").write_text(svg(charts, "min"))


def main() -> int:
    """Run the command; return its exit code: 1 if something has grown."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.cluster.soak", description=__doc__.splitlines()[0]
    )
    for one in fields(Plan):
        default = one.default
        parser.add_argument(
            f"--{one.name}", type=type(default), default=default, help="(%(default)s)"
        )
    parser.add_argument("--to", type=Path, default=Path(), help="folder of soak.csv and soak.svg")
    chosen = vars(parser.parse_args())
    to = chosen.pop("to")
    plan = Plan(**chosen)
    with tempfile.TemporaryDirectory() as text:
        samples = asyncio.run(soak(plan, Path(text), _say))
    write(samples, to)
    for name, used_ms in cpu_of(samples, plan.rate).items():
        _say(f"{name}: {used_ms:.3f} ms of a processor a record")
    _say(_brief(samples[-1][1]))
    found = grown(samples)
    _say("\n".join(["GROWN:", *found]) if found else "nothing has grown")
    return 1 if found else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
