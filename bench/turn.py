"""One workload with one tree's Ripple: ``python bench/turn.py TREE WORKLOAD``.

Answers a line of JSON when ready: why it cannot, or ""; then for each line of input the processor
seconds of one run.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(tree: str, name: str) -> None:
    # Ripple of that tree, workloads of this one.
    sys.path[0] = tree
    import ripple  # noqa: PLC0415 - from the tree that was named

    assert Path(ripple.__file__).is_relative_to(tree), ripple.__file__
    sys.path.insert(0, str(Path(__file__).parent.parent))
    try:
        from bench.workloads import WORKLOADS, processor_seconds  # noqa: PLC0415

        workload = WORKLOADS[name]
        run = workload.begin(workload.events)
        run()
    except Exception as error:
        print(json.dumps(f"{type(error).__name__}: {error}"), flush=True)
        return
    print(json.dumps(""), flush=True)
    for _ in sys.stdin:
        print(json.dumps(processor_seconds(run)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
