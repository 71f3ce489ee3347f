"""One benchmark in this process: ``python -m bench.one NAME`` writes its rows as JSON."""

from __future__ import annotations

import importlib
import json
import sys

if __name__ == "__main__":
    rows = importlib.import_module(f"bench.{sys.argv[1]}").measure()
    json.dump([row.as_dict() for row in rows], sys.stdout)
