"""Lines that come one at a time: from a line written to a pipe until the answer can be read.

Beside it, a plain Python loop in a process of its own. ``--batch`` does not matter: what is there
is answered when nothing more is ready. Then rows of a Python program.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from bench.live_rows import live_rows
from bench.row import Aim, Row, at_most
from bench.timing import QUICK

LINES = 300 if QUICK else 2_000
WARM_LINES = 100
PAUSE_S = 0.001  # so that each line comes alone
AIM_US = 1_000.0
DEMO = "import sys; from ripple.cli.run.vwap_demo import main; sys.exit(main())"
PLAIN = """
import sys
sums = {}
for line in sys.stdin:
    symbol, price, size, *_ = line.split(",")
    state = sums.setdefault(symbol, [0.0, 0, 0])
    state[0] += float(price) * int(size)
    state[1] += int(size)
    state[2] += 1
    print(f"{symbol},{state[0] / state[1]:.4f},{state[1]},{state[2]}", flush=True)
"""
OTHER = "plain loop"


def measure() -> list[Row]:
    other = _lines([sys.executable, "-c", PLAIN])
    rows: list[Row] = []
    for batch_rows in (1, 1_000):
        ours = _lines([sys.executable, "-c", DEMO, "--stdin", "--batch", str(batch_rows)])
        for what, took_us in ours.items():
            aim: Aim | None = at_most(AIM_US) if what == "processor time" else None
            name = f"one line, --batch {batch_rows:,}: {what}"
            rows.append(Row(name, took_us, "us", OTHER, other[what], aim))
    return rows + live_rows()


def _lines(command: list[str]) -> dict[str, float]:
    """Return what one line takes, in microseconds."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        took_us: list[float] = []
        for number in range(WARM_LINES + LINES):
            if number == WARM_LINES:
                began_us = _processor_us(process.pid)
            line = b"SYM%04d,%d.25,%d,%d,XNAS\n" % (number % 100, number, number + 1, number)
            started = time.perf_counter()
            process.stdin.write(line)
            answer = b""
            while not answer.endswith(b"\n"):
                answer += os.read(process.stdout.fileno(), 65_536)
            took_us.append((time.perf_counter() - started) * 1e6)
            assert answer.startswith(line[:7]), answer
            assert answer.count(b"\n") == 1, answer
            time.sleep(PAUSE_S)
        processor_us = (_processor_us(process.pid) - began_us) / LINES
        process.stdin.close()
        process.stdout.read()
    ordered = sorted(took_us[WARM_LINES:])
    return {
        "processor time": processor_us,
        "p50": ordered[LINES // 2],
        "p99": ordered[LINES * 99 // 100],
    }


def _processor_us(process: int) -> float:
    """Return the processor time of all threads so far."""
    tasks = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e3
