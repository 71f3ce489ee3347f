"""The log of a partition's answers, in the store of its checkpoints.

It is an input of the partition: an answer is durable before it counts, and a cut has the number of
counted answers. New answers go to a journal (``ripple.storage.fenced``), which rejects appends of
former owners. Once it is large, its answers move to a segment, an object of their own, and one
object of the journal takes the place of all, with the index of the segments. ``answer_objects`` has
the formats.

A segment goes once no record that it answers can be read again, and no kept checkpoint is before
its end. Segments of former owners that no index names are deleted, those of later owners never.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from contextlib import suppress
from typing import TYPE_CHECKING

from ripple.core.errors import InputError, PlanError
from ripple.engine.operators.answer_names import INPUT
from ripple.engine.operators.answer_rows import answer_schema
from ripple.model.canonical import digest, digest_of
from ripple.model.pipeline.input_names import answers_of, of_sources
from ripple.storage.fenced import DamagedError
from ripple.storage.fenced.stored import object_in
from ripple.task.asks.answer_objects import (
    OWN_COLUMNS,
    Index,
    Recorded,
    Segment,
    answers_in,
    answers_of_segment,
    damaged,
    encoded,
    merged,
    no_rows,
    segment_of,
)
from ripple.task.input_log import InputLog
from ripple.world.errors import StoreError
from ripple.world.ports import all_guards
from ripple.world.together import together

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from ripple.core.cut import Cut
    from ripple.model.pipeline.plan import Plan
    from ripple.model.pipeline.waiting_nodes import Ask
    from ripple.storage.fenced import Added
    from ripple.world.ports import Guards, ObjectStore, Random

ANSWER_OBJECTS_MAX = 256
"""The number of objects of the journal beyond which all are merged into one."""
SEGMENT_BYTES = 16 << 20
"""The bytes in the journal from which on its answers become a segment."""
SEGMENTS_MAX = 16_384
"""The number of segments beyond which the oldest go."""
DELETES_MAX = 16  # at a time

_SEGMENT_NAME = re.compile(r"\d{16}-(\d{16})\.segment")


def question_keys(plan: Plan) -> dict[str, str]:
    """Return the key of each ask's question: of its name and of the node below."""
    below = {node.of.name: node.of.node_key for node in plan.computed}
    return {ask.name: digest([ask.name, digest_of(below[ask.reads])]) for ask in plan.asks}


async def problems_of(
    store: ObjectStore,
    pipeline: str,
    partition: int,
    cuts: Iterable[Cut],
    plan: Plan | None = None,
    *,
    whole: bool = False,
) -> list[str]:
    """Return why a replay up to these cuts would fail on its answers, or under a plan.

    whole: whether to read each segment, too. Raises StoreError.
    """
    log, name, cuts = AnswerLog(store, pipeline, partition), answers_of(partition), list(cuts)
    offsets = [cut.get(name, 0) for cut in cuts]
    try:
        await log.read()
        log.check(max(offsets, default=0))
        if plan is not None:
            log.check_plan(plan, cuts)
    except (InputError, PlanError) as error:
        return [str(error)]
    return [str(error) for error in await log.damage()] if whole else []


class AnswerLog(InputLog):
    """The answers of a partition, in order; see InputLog.

    Invariants: the segments of ``_index``, then the parts in ``_recorded``, follow each other
    without holes, from ``first`` to ``end``. Of the answers in segments, ``_loaded`` has those of
    one at most. ``_declared`` has per question the schema of its answers.
    """

    _folder = "answers"
    _entries = "answers of services"
    _removed = (
        "older ones went with their records, so begin with another folder of checkpoints and "
        "outputs, and answers anew"
    )

    def __init__(
        self, store: ObjectStore, pipeline: str, partition: int = 0, *, guards: Guards = all_guards
    ) -> None:
        """Make no request yet. The store should retry failures."""
        super().__init__(store, pipeline, partition, guards)
        self._store = store
        self._epoch = 0
        self._index = Index()
        self._loaded: tuple[str, list[Recorded]] = "", []
        self._recorded: list[Recorded] = []
        self._declared: dict[str, tuple[str, pa.Schema]] = {}

    @property
    def first(self) -> int:
        """The first offset that can be read from."""
        return self._index.first

    @property
    def end(self) -> int:
        """The offset after the last answer."""
        return self._recorded[-1].end if self._recorded else self._index.end

    @property
    def length_bytes(self) -> int:
        """The bytes of all objects that hold answers."""
        return self._journal.length_bytes + sum(one.length_bytes for one in self._index.segments)

    @property
    def inputs(self) -> set[str]:
        """The inputs whose records have answers."""
        recorded = {
            name for one in self._recorded for name in one.rows.column(INPUT).unique().to_pylist()
        }
        return recorded.union(*(one.reach for one in self._index.segments))

    async def open(self, epoch: int, random: Random) -> None:
        """Become the owner, and read the answers; see InputLog."""
        await super().open(epoch, random)
        self._epoch = epoch

    async def check_segments(self) -> None:
        """Raise InputError where a segment is missing, and StoreError; its bytes are not read."""
        missing = await self._missing()
        if missing:
            await self.read()  # its owner may have let some go
            missing = await self._missing()
        if missing:
            raise damaged(f"{missing[0]} is missing")

    async def _missing(self) -> list[str]:
        names = [one.name for one in self._index.segments]
        there = set(await self._store.list(self._prefix)) if names else set()
        return [name for name in names if name not in there]

    async def damage(self) -> list[InputError]:
        """Return the damage of each segment, after ``read``. Raises StoreError."""
        found = []
        for segment in self._index.segments:
            try:
                await self._answers(segment)
            except InputError as error:
                found.append(error)
        return found

    def check_plan(self, plan: Plan, cuts: Iterable[Cut]) -> None:
        """Raise PlanError where the questions of a plan do not fit the log.

        cuts: of checkpoints and outputs. For rows before them the declared questions were asked.
        """
        cuts = [{name: cut[name] for name in of_sources(cut) if cut[name]} for cut in cuts]
        reached = next((cut for cut in cuts if cut), None)
        for ask, question in question_keys(plan).items():
            declared = self._declared.get(question)
            node = _ask_of(plan, ask)
            if declared is None and reached is not None:
                upto = ", ".join(f"{name} {offset}" for name, offset in reached.items())
                raise PlanError(
                    f"pipeline {plan.name!r}: {ask!r} was not asked up to {upto}, and outputs hold "
                    "rows of these records: give the pipeline another name and other outputs"
                )
            if declared is not None and not _fits(declared[1], node):
                was = ", ".join(
                    f"{field.name}: {field.type}" for field in list(declared[1])[OWN_COLUMNS:]
                )
                raise PlanError(
                    f"pipeline {plan.name!r}: answers of {ask!r} were recorded as {{{was}}}: "
                    "give the pipeline another name and other outputs"
                )
            if lacking := self._lacking(question, node):
                raise PlanError(
                    f"pipeline {plan.name!r}: recorded answers of {ask!r} have no {lacking!r}: "
                    "let it be optional, or give the pipeline another name and other outputs"
                )

    def _lacking(self, question: str, ask: Ask) -> str | None:
        """Return a required field of an ask that recorded answers lack."""
        for field in ask.schema.fields:
            if not field.optional and (
                any(one.question == question and one.lacks(field.name) for one in self._recorded)
                or any(
                    question in one.filled and field.name not in one.filled[question]
                    for one in self._index.segments
                )
            ):
                return field.name
        return None

    def undeclared(self, plan: Plan) -> list[str]:
        """Return the asks of a plan whose questions were never asked."""
        keys = question_keys(plan)
        return [ask for ask, question in keys.items() if question not in self._declared]

    async def declare(self, plan: Plan) -> None:
        """Record the questions of a plan for all later rows; raises as ``add``."""
        asked = [
            (ask, question, answer_schema(_ask_of(plan, ask)))
            for ask, question in question_keys(plan).items()
        ]
        new = [
            Recorded(ask, question, self.end, no_rows(schema))
            for ask, question, schema in asked
            if self._declared.get(question) != (ask, schema)
        ]
        if new:
            await self._put(new)

    async def add(self, parts: Sequence[Recorded]) -> None:
        """Add answers, from ``end`` on; they can be read once they are durable.

        Raises FencedError when another owner has begun; after a StoreError it may be repeated.
        """
        await self._put(parts)

    async def _put(self, parts: Sequence[Recorded]) -> None:
        if self._guards("answer_put"):
            await self._journal.add(encoded(parts))
        self._hold(parts)

    @property
    def is_untidy(self) -> bool:
        """Whether the journal has too many objects, or too large ones."""
        journal = self._journal
        is_full = bool(self._recorded) and journal.length_bytes >= SEGMENT_BYTES
        return is_full or journal.objects > ANSWER_OBJECTS_MAX

    async def tidy(self, inputs: Cut, offset: int) -> None:
        """Put one object of the journal in the place of all, and let passed segments go.

        inputs, offset: see ``Segment.is_passed``. Raises and may be repeated as ``add``.
        """
        journal, index, recorded = self._journal, self._index, merged(self._recorded)
        segments = list(index.segments)
        if recorded and journal.length_bytes >= SEGMENT_BYTES:
            # Loaded, since the last answers may be unread yet.
            self._loaded = await self._put_segment(recorded, segments), recorded
            index, recorded = Index(segments[-1].end), []
        passed = 0
        for one in segments:
            if self._guards("answer_kept") and not one.is_passed(inputs, offset):
                break
            passed += 1
        kept = segments[max(passed, len(segments) - SEGMENTS_MAX) :]
        index = Index(index.end, tuple(kept))
        declared = [
            Recorded(ask, question, index.end, no_rows(schema))
            for question, (ask, schema) in self._declared.items()
        ]
        await journal.add(encoded([*declared, *recorded], index), is_whole=True)
        self._index, self._recorded = index, recorded
        with suppress(StoreError):  # costs room only, and is repeated with the next ones
            await self._delete_unnamed()

    async def _put_segment(self, recorded: list[Recorded], segments: list[Segment]) -> str:
        """Store all answers of the journal as a segment, after the others; return its name."""
        name = f"{self._prefix}{recorded[0].first:016d}-{self._epoch:016d}.segment"
        segment, data = segment_of(recorded, name)
        if not await self._store.put_if_absent(name, data):
            # A repeated put, with the same answers: nothing is added in between.
            answers_of_segment(segment, await self._object(segment))
        segments.append(segment)
        return name

    async def _delete_unnamed(self) -> None:
        """Delete segments that are in no index, of this owner and of former ones."""
        named = {one.name for one in self._index.segments}
        unnamed = [
            name
            for name in await self._store.list(self._prefix)
            if name not in named
            and (found := _SEGMENT_NAME.fullmatch(name.removeprefix(self._prefix)))
            and int(found[1]) <= self._epoch
        ]
        for at in range(0, len(unnamed), DELETES_MAX):
            await together(*map(self._store.delete, unnamed[at : at + DELETES_MAX]))

    def _forget(self) -> None:
        self._recorded, self._index = [], Index()
        self._declared.clear()

    def _hold(self, parts: Iterable[Recorded]) -> None:
        for one in parts:
            if not one.rows.num_rows:
                self._declared[one.question] = one.ask, one.rows.schema.remove_metadata()
            elif one.first != self.end:
                raise damaged(f"after offset {self.end} follows {one.first}")
            else:
                self._recorded.append(one)

    def after(self, offset: int) -> Recorded | None:
        """Return answers from an offset on; None if there are none yet.

        The offset must be loaded. Raises InputError if they are gone.
        """
        self.check_first(offset)
        parts = self._recorded if self._segment_at(offset) is None else self._loaded[1]
        at = bisect_right(parts, offset, key=lambda one: one.end)
        return parts[at].from_offset(offset) if at < len(parts) else None

    def is_loaded(self, offset: int) -> bool:
        """Return whether answers from an offset on are in memory, as far as there are any."""
        segment = self._segment_at(offset)
        return segment is None or segment.name == self._loaded[0]

    async def load(self, offset: int) -> None:
        """Read the answers from an offset on into memory, in place of those of another segment.

        Raises StoreError, and InputError where they are damaged or gone.
        """
        segment = self._segment_at(offset)
        if segment is None or segment.name == self._loaded[0]:
            return
        try:
            self._loaded = segment.name, await self._answers(segment)
        except InputError:
            if not self._epoch:  # its owner may have let it go
                await self.read()
                self.check_first(offset)
            raise

    def _segment_at(self, offset: int) -> Segment | None:
        segments = self._index.segments
        at = bisect_right(segments, offset, key=lambda one: one.end)
        return segments[at] if at < len(segments) else None

    async def _answers(self, segment: Segment) -> list[Recorded]:
        return answers_of_segment(segment, await self._object(segment))

    async def _object(self, segment: Segment) -> bytes | None:
        try:
            return await object_in(self._store, segment.name, length_max=segment.length_bytes)
        except DamagedError as error:
            raise damaged(str(error)) from error

    def _take(self, added: list[Added]) -> None:
        if self._journal.damage:
            raise damaged(self._journal.damage[0])
        self._forget()
        for one in added:
            index, parts = answers_in(one.data)
            self._index = index or self._index
            self._hold(parts)


def _ask_of(plan: Plan, name: str) -> Ask:
    return next(one for one in plan.asks if one.name == name)


def _fits(recorded: pa.Schema, ask: Ask) -> bool:
    """Return whether recorded answers are answers of an ask: it may have new optional fields."""
    was = {field.name: field.type for field in list(recorded)[OWN_COLUMNS:]}
    now = {field.name: field for field in list(answer_schema(ask))[OWN_COLUMNS:]}
    optional = {field.name for field in ask.schema.fields if field.optional}
    known = all(name in now and now[name].type == kind for name, kind in was.items())
    return known and all(name in was or name in optional for name in now)
