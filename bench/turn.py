"""One workload with one tree's Ripple: ``python bench/turn.py TREE WORKLOAD TIMES``.

TIMES: so many times the events of the workload. Answers a line of JSON when ready: why it cannot,
or ""; then for each line of input the least processor seconds of a few runs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

# The first run after a turn of the other process finds the caches of the processor cold.
RUNS = 4


def main(tree: str, name: str, times: str) -> None:
    # Ripple of that tree, workloads of this one.
    sys.path[0] = tree
    import ripple  # noqa: PLC0415 - from the tree that was named

    assert Path(ripple.__file__).is_relative_to(tree), ripple.__file__
    sys.path.insert(0, str(Path(__file__).parent.parent))
    try:
        from bench.workloads import WORKLOADS, processor_seconds  # noqa: PLC0415

        workload = WORKLOADS[name]
        run = workload.begin(round(workload.events * float(times)))
        run()
    except Exception as error:
        print(json.dumps(f"{type(error).__name__}: {error}"), flush=True)
        return
    print(json.dumps(""), flush=True)
    for _ in sys.stdin:
        least = min(processor_seconds(run) for _ in range(RUNS))
        print(json.dumps(least), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
