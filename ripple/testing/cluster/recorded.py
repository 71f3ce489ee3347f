"""The entries of logs that a simulated cluster has recorded, as they come into its store.

The markers of idle inputs, and the answers of services.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from ripple.engine.operators.answer_names import INDEX, INPUT, OFFSET
from ripple.storage.fenced.journal import added_in
from ripple.task.asks.answer_objects import answers_in
from ripple.task.marker_log import markers_in

if TYPE_CHECKING:
    from ripple.model.batch import IdleMarker
    from ripple.task.asks.answer_objects import Recorded

_OBJECT = re.compile(r".*/(\d{5})/(markers|answers)/\d{16}\.journal")


class RecordedEntries:
    """The markers and answers of each partition by their places; of one run."""

    def __init__(self) -> None:
        self._markers: dict[int, dict[int, IdleMarker]] = {}
        self._answers: dict[int, dict[int, Recorded]] = {}
        self._rows: set[tuple[object, ...]] = set()

    def came(self, name: str, data: bytes) -> str | None:
        """Take a new object of the store; return its fault, None if there is none."""
        found = _OBJECT.fullmatch(name)
        content = added_in(data, name).data if found else b""
        if found is None or not content:
            return None
        number = int(found[1])
        if found[2] == "answers":
            return self._answers_came(name, number, content)
        held = self._markers.setdefault(number, {})
        for one in markers_in(content):
            last = max(held, default=0)
            if held.setdefault(one.next_offset, one) != one:
                return f"{name} has {one} in the place of {held[one.next_offset]}"
            if one.next_offset < last and held[one.next_offset] is one:
                return f"{name} has {one} behind marker {last}"
        return None

    def _answers_came(self, name: str, number: int, content: bytes) -> str | None:
        held = self._answers.setdefault(number, {})
        for part in answers_in(content)[1]:
            for at in range(part.first, part.end):
                one = replace(part, first=at, rows=part.rows.slice(at - part.first, 1))
                if at in held:
                    if held[at].rows != one.rows:
                        return f"{name} has another answer in the place of {at}"
                    continue
                if at != len(held):
                    return f"{name} has answer {at} after {len(held)}"
                held[at] = one
                row = tuple(one.rows.column(each)[0].as_py() for each in (INPUT, OFFSET, INDEX))
                if (part.question, *row) in self._rows:
                    return f"{name} has a second answer to {row}"
                self._rows.add((part.question, *row))
        return None

    def before(self, partition: int, offset: int) -> tuple[IdleMarker, ...]:
        """Return the markers of a partition that a cut has read.

        Raises AssertionError where one of them is not recorded.
        """
        held = self._markers.get(partition, {})
        missing = [at for at in range(1, offset + 1) if at not in held]
        assert not missing, f"J11: markers {missing} of partition {partition} are not recorded"
        return tuple(held[at] for at in range(1, offset + 1))

    def answers_before(self, partition: int, offset: int) -> tuple[Recorded, ...]:
        """Return the answers of a partition that a cut has read; raises as ``before``."""
        held = self._answers.get(partition, {})
        missing = [at for at in range(offset) if at not in held]
        assert not missing, f"J11: answers {missing} of partition {partition} are not recorded"
        return tuple(held[at] for at in range(offset))
