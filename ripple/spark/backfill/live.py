"""The live input that continues history: an event log, or a topic of Kafka."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ripple.connectors.inputs import keyed_by
from ripple.connectors.locate import open_inputs
from ripple.core.arguments import shown
from ripple.core.errors import InputError
from ripple.model.pipeline.division import divided_why
from ripple.model.pipeline.nodes import LastTable
from ripple.model.pipeline.topology import stages_of
from ripple.spark.backfill.live_input import looked_at
from ripple.spark.fold import check_triggers
from ripple.spark.kafka_shares import PREFIX as KAFKA
from ripple.spark.portions import Sources, check_apart
from ripple.spark.shares import Source
from ripple.storage.log_uri import PREFIX
from ripple.task.arguments import sources_of
from ripple.task.restore import notes_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.backfill.live_input import LiveInput
    from ripple.spark.shares import Share


@dataclass(frozen=True, slots=True)
class LiveSource:
    """The live partitions of one source, by its name.

    key: the fields hashed by murmur2 into a partition; () for a single partition, None for a table
    with an unknown key.
    """

    name: str
    place: str
    key: tuple[str, ...] | None
    inputs: tuple[LiveInput, ...]

    @classmethod
    def at(cls, place: str, plan: Plan, source: SourceSpec, until_ns: int) -> LiveSource:
        """Examine ``log:DIR/TOPIC`` or ``kafka:BROKERS/TOPIC``.

        Raises InputError for an input that cannot continue history.
        """
        if source.time_field is None and source.table is None:
            raise InputError(f"{source.name} has no event time, so history has no end")
        if not isinstance(place, str) or not place.startswith((PREFIX, KAFKA)):
            raise InputError(
                f"a live input is a log or a topic, {PREFIX}DIR/TOPIC or {KAFKA}BROKERS/TOPIC, "
                f"not {shown(place) if isinstance(place, str) else type(place).__name__}"
            )
        inputs = open_inputs(place, plan, 1, follow=False, source=source)
        names = inputs.names
        key = keyed_by(inputs) if len(names) > 1 else ()
        why = divided_why(plan, key) if len(names) > 1 else None
        if source.table is None:  # nothing of a table is placed
            if len(names) > 1 and key == () and why is None:
                why = "its records have no key, so records of history have no partition"
            if key is None:
                why = "the key of its partitions is unknown: add it, as in ?key=symbol"
        if why is not None:
            raise InputError(f"{place} cannot continue history partition by partition: {why}")
        found = asyncio.run(looked_at(place, source, inputs, until_ns))
        return cls(source.name, place, key, found)

    def shares(self) -> tuple[Share, ...]:
        """Return all of it in shares."""
        return tuple(one.share(at, one.first, one.end) for at, one in enumerate(self.inputs))


@dataclass(frozen=True, slots=True)
class Live:
    """The live partitions of all sources, each from its first record at or after ``until_ns``.

    partitions: their number in the pipeline; partition i modulo it reads input i of a source. A
    table is live from its first record: its topic holds it, and offsets tell the newest of a key.
    """

    until_ns: int
    sources: tuple[LiveSource, ...]
    partitions: int

    @classmethod
    def at(
        cls,
        given: str | Mapping[str, str],
        plan: Plan,
        until_ns: int,
        partitions: int | None = None,
    ) -> Live:
        """Examine the live inputs: of the one source, or of each by its name.

        Raises InputError for inputs that cannot continue history.
        """
        for table in plan.row_tables:
            if isinstance(table, LastTable):
                continue  # its rows have names of their own
            is_scan = any(one.name == table.input for one in plan.scans)
            eager = "settled=False" if is_scan else "emit='eager'"
            final = "settled=True" if is_scan else "emit='final'"
            raise InputError(
                f"history of {plan.name} cannot be backfilled: {table.input} has {eager}, and "
                "names rows by their offsets in the log, which records of history do not have. Use "
                f"{final}, or begin from the log, with ripple run"
            )
        places = sources_of(plan, given)
        sources = tuple(
            LiveSource.at(places[source.name], plan, source, until_ns) for source in plan.sources
        )
        each = tuple(Source(s.name, s.place, s.shares(), s.key) for s in sources)
        whole = Sources(each)  # partitions wait for their own inputs, as in the run
        if len(sources) > 1:
            check_apart(whole.each)
        most = whole.partitions
        count = most if partitions is None else partitions
        if not 1 <= count <= most or most % count:
            have = "the live inputs can be read in"
            if len(sources) == 1:
                have = f"{sources[0].place} has"
            raise InputError(
                f"{have} {most} partitions, which cannot be divided among {count} of the "
                "pipeline: give a divisor"
            )
        if count > 1 and len(stages_of(plan)) > 1:
            raise InputError(
                f"{plan.name} has several stages, and history is backfilled into one partition "
                "only that has them all: give 1, and continue with ripple run"
            )
        why = (whole.divided_anew(plan) or whole.together_why(plan)) if count > 1 else None
        if why is not None:
            raise InputError(
                f"history of {plan.name} is backfilled into one partition only, since {why}. Give "
                "1, and continue with ripple run"
            )
        if len(whole.shares) > 1:
            check_triggers(plan)
        return cls(until_ns, sources, count)

    @property
    def inputs(self) -> tuple[LiveInput, ...]:
        """The inputs of all, source by source; the number of one is its rank among them."""
        return tuple(one for source in self.sources for one in source.inputs)

    def source_of(self, name: str) -> tuple[LiveSource, int]:
        """Return a source, and the number of its first input."""
        first = 0
        for source in self.sources:
            if source.name == name:
                break
            first += len(source.inputs)
        return source, first

    def inputs_of(self, partition: int) -> tuple[LiveInput, ...]:
        """Return the inputs that a partition of the pipeline reads."""
        return self.inputs[partition :: self.partitions]

    def notes_of(self, partition: int, backfill: str) -> dict[str, str]:
        """Return the notes for a partition's checkpoint."""
        inputs = self.inputs_of(partition)
        identities = {one.name: one.identity for one in inputs}
        return notes_of(identities, {one.name: one.begins for one in inputs}, backfill)
