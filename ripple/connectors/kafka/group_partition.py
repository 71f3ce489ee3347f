"""The owner of a group of outputs, and its cuts topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ripple.connectors.kafka.cuts import topic_of
from ripple.world.broker import TopicPartition

if TYPE_CHECKING:
    from ripple.connectors.connector import Part


@dataclass(frozen=True, slots=True)
class GroupPartition:
    """The partition of a pipeline's stage that a group belongs to.

    stage: its number or name, see ``cuts.stage_of``. key: the dividing fields of the stage's rows,
    () if unknown; keys: by output, where they are others.
    """

    pipeline: str
    part: Part
    stage: int | str = 0
    key: tuple[str, ...] = ()
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def divided_by(self, output: str) -> tuple[str, ...]:
        """Return the dividing fields of an output's rows, () if unknown."""
        return self.keys.get(output, self.key)

    def is_shared(self, output: str) -> bool:
        """Return whether rows of other partitions in an output cannot be told apart."""
        return self.part.of > 1 and not self.divided_by(output)

    @property
    def name(self) -> str:
        """Return the id of its transactions."""
        return f"ripple.{self.pipeline}.{self.stage}.{self.part.number}"

    @property
    def place(self) -> TopicPartition:
        """Return the topic and partition of its cut records."""
        return TopicPartition(topic_of(self.pipeline, self.stage), self.part.number)
