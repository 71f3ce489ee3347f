"""The report of a run, in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ripple.core.events import Restored
    from ripple.engine.machine import Counters, Uncomputable


@dataclass(slots=True)
class Report:
    """The work of a run, without that of earlier runs.

    stabilizations: one per batch, and one more if windows closed when the input ended.
    watermark_ns: of the events, before the input was declared at its end.
    consumed: records of all runs, each of which was applied, is very late or was rejected.
    mildly_late, future: how many of those applied were. rejected: the others that this run kept or
    counted, by step and reason; letters: the file that has them, None if they were only counted or
    are kept with the checkpoints. uncomputable: per fold that has some, the rows that are absent at
    the end because they cannot be computed.
    versions_out_of_order: per table with event times, its records of all runs that are earlier than
    the row of their key then.
    events: records of this run, without replayed ones. restored: the checkpoint from which a
    durable run began, and its replay; None until it has caught up, and for a one-shot run.
    checkpoint: the last one, by name. cut: the next offset of each input, and digest: of the state
    there; both at the end. stopped: whether it was asked to end.
    """

    stabilizations: int = 0
    rows_out: int = 0
    watermark_ns: int = 0
    consumed: int = 0
    applied: int = 0
    mildly_late: int = 0
    very_late: int = 0
    future: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    letters: str | None = None
    uncomputable: Mapping[str, Uncomputable] = field(default_factory=dict)
    versions_out_of_order: Mapping[str, int] = field(default_factory=dict)
    events: int = 0
    commits: int = 0
    restored: Restored | None = None
    checkpoint: str | None = None
    cut: Mapping[str, int] = field(default_factory=dict)
    digest: str = ""
    stopped: bool = False

    def count(self, counters: Counters) -> None:
        """Take over the engine's counts."""
        self.consumed, self.applied = counters.consumed, counters.applied
        self.mildly_late, self.very_late = counters.mildly_late, counters.very_late
        self.future = counters.future

    def _repr_html_(self) -> str:
        """Return the numbers that are not zero, for notebooks."""
        from html import escape  # noqa: PLC0415 - for notebooks alone

        shown: dict[str, str] = {"records": f"{self.consumed:,}"}
        for name in ("applied", "mildly_late", "very_late"):
            if count := getattr(self, name):
                shown[name.replace("_", " ")] = f"{count:,}"
        for cause, count in self.rejected.most_common():
            shown[f"rejected: {cause}"] = f"{count:,}"
        for name, rows in self.uncomputable.items():
            shown[f"not computed in {name}"] = f"{rows.count:,}"
        shown["rows written"] = f"{self.rows_out:,}"
        if self.checkpoint is not None:
            shown["checkpoint"] = self.checkpoint
        cells = (
            f"<tr><th>{escape(one)}</th><td>{escape(two)}</td></tr>" for one, two in shown.items()
        )
        return f"<table><caption>Run</caption><tbody>{''.join(cells)}</tbody></table>"
