"""The topic of a partition's output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ripple.connectors.kafka.rows import Rows


@dataclass(frozen=True, slots=True)
class TopicTarget:
    """The target of an output. topic: made if there is none."""

    topic: str
    rows: Rows
