"""Outputs without a sink: computed, and not written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.cli.lib.exits import say

if TYPE_CHECKING:
    from collections.abc import Collection

    from ripple.model.pipeline.plan import Plan


def say_left_out(plan: Plan, written: Collection[str]) -> None:
    """Name the outputs that have no sink, if there are some, and the way to write them.

    written: the names of the outputs that have one.
    """
    left = [output.name for output in plan.outputs if output.name not in written]
    if left:
        what = "outputs" if len(left) > 1 else "output"
        say(f"ripple: not written: {what} {', '.join(left)}; write it with --sink {left[0]}=URI")
