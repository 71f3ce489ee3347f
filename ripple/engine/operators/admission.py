"""Validation of a source's rows: required fields, types and checks of its record class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ripple.engine.kernels.screen import Screen
from ripple.model.schema.failing import Judge

if TYPE_CHECKING:
    from ripple.engine.kernels.columns import Layout
    from ripple.engine.operators.rows import Rows
    from ripple.model.pipeline.plan import SourceSpec


class Admission:
    """Rejects invalid rows of any source, before any step."""

    def __init__(self, source: SourceSpec, layout: Layout) -> None:
        """Judge the rows of ``source``, in batches of this layout."""
        self._name = source.name
        self._judges = {name: Judge(checks) for name, checks in source.checks.items()}
        self.required = [
            member.name
            for member in source.fields
            if not member.optional or member.name == source.time_field
        ]
        bounds = {name: judge.bounds for name, judge in self._judges.items()}
        self.passes = Screen(layout, self.required, bounds).passes
        """Whether all rows of a batch count; where not, ``refuse`` looks at each."""

    def refuse(self, rows: Rows) -> None:
        """Drop the rows that do not count, for the first reason in the order of fields."""
        rows.reject_nulls(self.required, self._name)
        refused: dict[int, str] = {}
        for name, judge in self._judges.items():
            for reason, failed in judge.failing(rows.columns.arrow(name)):
                for row in np.flatnonzero(failed).tolist():
                    refused.setdefault(row, f"{name} is {reason}")
        if refused:
            rows.reject(dict(sorted(refused.items())), self._name)
