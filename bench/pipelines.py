"""The workloads that the gate compares, in millions of events a second of processor time."""

from __future__ import annotations

from bench.row import Row
from bench.timing import QUICK
from bench.workloads import WORKLOADS, processor_seconds

ROUNDS = 3 if QUICK else 7
VERSUS = "vwap"


def measure() -> list[Row]:
    runs = {name: workload.begin(workload.events) for name, workload in WORKLOADS.items()}
    least = dict.fromkeys(runs, float("inf"))
    for _ in range(ROUNDS):
        for name, run in runs.items():
            least[name] = min(least[name], processor_seconds(run))
    rates = {name: WORKLOADS[name].events / least[name] / 1e6 for name in runs}
    return [Row(name, rate, "M events/s", VERSUS, rates[VERSUS]) for name, rate in rates.items()]
