"""The markers of idle inputs that a simulated cluster has recorded, as they come into its store."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ripple.storage.fenced.journal import added_in
from ripple.task.marker_log import markers_in

if TYPE_CHECKING:
    from ripple.model.batch import IdleMarker

_OBJECT = re.compile(r".*/(\d{5})/markers/\d{16}\.journal")


class RecordedMarkers:
    """The markers of each partition by their places; of one run."""

    def __init__(self) -> None:
        self._markers: dict[int, dict[int, IdleMarker]] = {}

    def came(self, name: str, data: bytes) -> str | None:
        """Take a new object of the store; return its fault, None if there is none."""
        found = _OBJECT.fullmatch(name)
        content = added_in(data, name).data if found else b""
        if found is None or not content:
            return None
        held = self._markers.setdefault(int(found.group(1)), {})
        for one in markers_in(content):
            last = max(held, default=0)
            if held.setdefault(one.next_offset, one) != one:
                return f"{name} has {one} in the place of {held[one.next_offset]}"
            if one.next_offset < last and held[one.next_offset] is one:
                return f"{name} has {one} behind marker {last}"
        return None

    def before(self, partition: int, offset: int) -> tuple[IdleMarker, ...]:
        """Return the markers of a partition that a cut has read.

        Raises AssertionError where one of them is not recorded.
        """
        held = self._markers.get(partition, {})
        missing = [at for at in range(1, offset + 1) if at not in held]
        assert not missing, f"J11: markers {missing} of partition {partition} are not recorded"
        return tuple(held[at] for at in range(1, offset + 1))
