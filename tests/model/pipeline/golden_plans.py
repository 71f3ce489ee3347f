"""Plans whose keys stand in the stores of users: of the examples, and of the tests' programs."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

from ripple.model.pipeline.plan import Plan

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "data" / "plans.json"
FILES = (
    "examples/market.py",
    "examples/portfolio.py",
    "examples/venues.py",
    "examples/vwap.py",
    "tests/cluster/pipeline_events.py",
    "tests/cluster/pipeline_sessions.py",
    "tests/cluster/pipeline_totals.py",
    "tests/cluster/pipeline_traced.py",
    "tests/cluster/pipeline_venues.py",
    "tests/cluster/pipeline_windows.py",
    "tests/services/pipeline_venues.py",
    "tests/task/pipeline_vwap.py",
    "tests/worker/pipeline_counts.py",
)


def plan_in(path: str) -> Plan:
    """Return the plan of a file's pipeline."""
    name = f"golden_{path.replace('/', '_').removesuffix('.py')}"
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look for it
    try:
        spec.loader.exec_module(module)
        plan: Plan = module.pipeline.plan()
    finally:
        del sys.modules[name]
    return plan


def pinned(plan: Plan) -> dict[str, Any]:
    """Return all of a plan by which its state, outputs and cluster are found again."""
    return {
        "topology_hash": plan.topology_hash,
        "node_keys": list(plan.node_keys),
        "notes": {name: text for name, text in plan.notes.items() if name != "python"},
        "description": plan.describe().splitlines(),
    }


def golden() -> dict[str, Any]:
    """Return what is pinned, by file."""
    held: dict[str, Any] = json.loads(GOLDEN.read_text())
    return held
