"""Lazy frames and data sets, read in batches by their libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def lazy_batches(place: Any, names: Sequence[str]) -> Iterator[Any] | None:
    """Return the batches of a lazy frame of Polars or a ``pyarrow.dataset``; None for others.

    names: the wanted columns; missing ones are left out. The rows are in the order of the frame, or
    of the files.
    """
    library = type(place).__module__.partition(".")[0]
    if library == "polars" and hasattr(place, "collect_batches"):
        there = [name for name in place.collect_schema().names() if name in names]
        chosen = place.select(there) if there else place
        frames: Iterator[Any] = chosen.collect_batches(maintain_order=True)
        return frames
    if library == "pyarrow" and hasattr(place, "to_batches") and hasattr(place, "get_fragments"):
        there = [name for name in place.schema.names if name in names]
        batches: Iterator[Any] = place.to_batches(columns=there or None)
        return batches
    return None
