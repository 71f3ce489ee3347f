"""Run benchmarks and print each figure beside its comparison."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import BENCHMARKS
from bench.against import GateError, against
from bench.gate import REGRESSION_RATIO
from bench.machine import describe
from bench.releases import history
from bench.row import Row
from bench.table import header, table
from bench.workloads import WORKLOADS

RESULTS = Path(__file__).parent / "results"
EVENTS_MIN = 1_000
ROWS_OF = ("spark_files", "spark_scale")


def main() -> int:
    """Return 0 when every benchmark ran, and none is slower than the gate lets pass; else 1."""
    given = _arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if given.history:
        print(history())
        return 0
    if given.against is not None:
        return _against(given)
    machine = describe(given.date)
    print(header(machine), flush=True)
    path = given.json or _default_path(machine)
    measured = _measured(path, machine) if given.resume else {}
    failed = []
    for name in given.names or [name for name in BENCHMARKS if name not in measured]:
        started = time.monotonic()
        rows = _run(name, given)
        if rows is None:
            failed.append(name)
            continue
        measured[name] = [row.as_dict() for row in rows]
        print(f"\n{table(f'{name} ({time.monotonic() - started:.0f} s)', rows)}", flush=True)
        _save(path, {"machine": machine, "benchmarks": measured})
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument(
        "--history", action="store_true", help="print the figures of releases, and measure nothing"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the figures")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="keep the figures of this machine and commit in --json FILE: run the others, "
        "or those named again",
    )
    parser.add_argument("--quick", action="store_true", help="fewer events and rounds: noisier")
    parser.add_argument("--events", type=int, metavar="N", help="of nexmark: how many")
    parser.add_argument(
        "--rows", type=int, metavar="N", help="of spark_files and spark_scale: how many"
    )
    parser.add_argument("--queries", metavar="q1,q5", help="of nexmark: all that run by default")
    parser.add_argument(
        "--against",
        metavar="COMMIT",
        help="compare workloads with those of another commit: all of them, or those named of "
        + ", ".join(WORKLOADS),
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=REGRESSION_RATIO,
        metavar="RATIO",
        help="of processor times, beyond which --against fails (%(default)s)",
    )
    parser.add_argument(
        "--planted",
        type=float,
        default=1.0,
        metavar="RATIO",
        help="give this tree so many times the events, to see that --against finds it",
    )
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    parser.add_argument("--date", default=now, help="the date to print, now by default")
    given = parser.parse_args()
    known = BENCHMARKS if given.against is None else tuple(WORKLOADS)
    unknown = set(given.names) - set(known)
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    if given.against is not None and given.json is not None:
        parser.error("--json does not go with --against")
    _check_nexmark(parser, given)
    _check_rows(parser, given)
    if given.resume and given.json is None:
        parser.error("--resume goes with --json FILE")
    return given


def _check_nexmark(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    if given.events is None and given.queries is None:
        return
    if given.names != ["nexmark"] or given.against is not None:
        parser.error("--events and --queries go with nexmark: python -m bench nexmark --queries q1")
    if given.events is not None and given.events < EVENTS_MIN:
        parser.error(f"--events takes {EVENTS_MIN:,} or more, not {given.events:,}")
    from bench.nexmark.queries import QUERIES  # noqa: PLC0415 - others do without it

    for name in given.queries.split(",") if given.queries else ():
        if name not in QUERIES:
            parser.error(f"no query {name!r}; there are {', '.join(QUERIES)}")


def _check_rows(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    if given.rows is None:
        return
    if not given.names or not set(given.names) <= set(ROWS_OF) or given.against is not None:
        parser.error(f"--rows goes with {' and '.join(ROWS_OF)}: python -m bench spark_scale")
    if given.rows < EVENTS_MIN:
        parser.error(f"--rows takes {EVENTS_MIN:,} or more, not {given.rows:,}")


def _against(given: argparse.Namespace) -> int:
    try:
        return against(
            given.against,
            given.names or list(WORKLOADS),
            given.limit,
            planted=given.planted,
            quick=given.quick,
        )
    except GateError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2


def _run(name: str, given: argparse.Namespace) -> list[Row] | None:
    """Return the rows of one benchmark from a process of its own, None when it failed.

    Ctrl+C and SIGTERM are passed on: some benchmarks then have the figures of what they have done.
    """
    environment = {**os.environ, "RIPPLE_BENCH_QUICK": "1" if given.quick else "0"}
    environment["RIPPLE_BENCH_EVENTS"] = str(given.events or "")
    environment["RIPPLE_BENCH_ROWS"] = str(given.rows or "")
    environment["RIPPLE_BENCH_QUERIES"] = given.queries or ""
    # Where it is set, every start compiles all modules anew, and users' do not.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.one", name], env=environment, stdout=subprocess.PIPE
    )
    try:
        figures, _ = process.communicate()
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        figures, _ = process.communicate()
        if process.returncode:
            raise
    if process.returncode:
        return None
    return [Row.from_dict(row) for row in json.loads(figures)]


def _default_path(machine: dict[str, str]) -> Path:
    commit = machine["commit"].split(",")[0]
    return RESULTS / f"{machine['date'].replace(' ', 'T').replace(':', '')}-{commit}.json"


def _measured(path: Path, machine: dict[str, str]) -> dict[str, list[dict[str, Any]]]:
    """Return the figures in a file of an earlier run, by benchmark; none if there is no file.

    Raises SystemExit where they are of another machine or commit.
    """
    if not path.exists():
        return {}
    found = json.loads(path.read_text())
    about = [name for name in machine if name not in ("date", "load")]
    differs = [name for name in about if found["machine"].get(name) != machine[name]]
    if differs:
        sys.exit(
            f"bench: {path} has another {' and '.join(differs)}: remove it, or name another file"
        )
    measured: dict[str, list[dict[str, Any]]] = found["benchmarks"]
    return {name: measured[name] for name in BENCHMARKS if name in measured}


def _save(path: Path, figures: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.tmp")  # a run may be stopped as it writes
    draft.write_text(json.dumps(figures, indent=1) + "\n")
    draft.replace(path)


if __name__ == "__main__":
    sys.exit(main())
