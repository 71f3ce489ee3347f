"""Names in ``--rebuild``; apart from the comparison of plans, unneeded at a first start."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from ripple.model.pipeline.plan import Fold, Output, Plan


def unknown_folds(plan: Plan, rebuild: Collection[str]) -> list[str]:
    """Return a problem for each text without a node to recompute."""
    sinks = (output for output in plan.outputs if output.is_stream)
    named: list[Fold | Output] = [*plan.folds, *sinks]
    known = {text for node in named for text in (node.name, node.node_key)}
    folds = ", ".join(node.name for node in named)
    return [
        f"there is no fold {text!r} to rebuild: the folds are {folds}"
        for text in rebuild
        if text not in known
    ]
