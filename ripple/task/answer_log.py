"""The log of a partition's answers, in the store of its checkpoints.

It is an input of the partition: an answer is durable before it counts, and a cut has the number of
counted answers. It is a journal (``ripple.storage.fenced``), which rejects appends of former
owners. An object holds consecutive Arrow streams, each with the answers to one question in the form
of ``answer_rows``; the schema of a stream names the question, and the offset of its first answer.

A stream without answers declares its question: from then on every row is asked for.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.core.errors import InputError, LimitError, PlanError
from ripple.engine.operators.answer_names import INPUT, OFFSET, REASON
from ripple.engine.operators.answer_rows import answer_schema
from ripple.model.canonical import digest, digest_of
from ripple.model.pipeline.input_names import answers_of, of_sources
from ripple.storage.checkpoint.checkpoints import prefix_of
from ripple.storage.fenced import Journal
from ripple.world.ports import all_guards

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from ripple.core.cut import Cut
    from ripple.model.pipeline.nodes import Ask
    from ripple.model.pipeline.plan import Plan
    from ripple.storage.fenced import Added
    from ripple.world.ports import Guards, ObjectStore, Random

OBJECT_BYTES_MAX = 4 << 20
"""The bytes of answers in one object; a larger answer has an object of its own."""
ANSWER_OBJECTS_MAX = 256
"""The number of objects beyond which all are merged into one."""
LOG_BYTES_MAX = 48 << 20
"""The bytes of a whole log in memory."""
KNOWN_ROWS_MAX = 4096
"""The answers of one batch."""

_ASK, _QUESTION, _FIRST = b"ask", b"question", b"first"


@dataclass(frozen=True)
class Recorded:
    """Consecutive answers to one question in the log.

    question: its key. first: the offset of the first answer. rows: as they were recorded.
    """

    ask: str
    question: str
    first: int
    rows: pa.RecordBatch

    @property
    def end(self) -> int:
        """The offset after the last answer."""
        return int(self.first + self.rows.num_rows)

    def from_offset(self, offset: int) -> Recorded:
        """Return the answers from an offset of theirs on."""
        return replace(self, first=offset, rows=self.rows.slice(offset - self.first))

    def known(self, cut: Cut, stop: int) -> pa.RecordBatch:
        """Return the first answers before ``stop`` to records before ``cut``."""
        rows = self.rows.slice(0, min(max(0, stop - self.first), KNOWN_ROWS_MAX))
        unread = np.flatnonzero(np.asarray(rows.column(OFFSET)) >= _read(rows, cut))
        return rows.slice(0, int(unread[0])) if len(unread) else rows


def _read(rows: pa.RecordBatch, cut: Cut) -> npt.NDArray[np.int64]:
    """Return per answer the next offset of its input. Raises InputError for an unknown input."""
    inputs = rows.column(INPUT).dictionary_encode()
    ends = []
    for name in inputs.dictionary.to_pylist():
        if name not in cut:
            raise InputError(
                f"the log of answers has answers to records of {name!r}, which this run does not "
                "read: give the sources that they were recorded with, or another folder of "
                "checkpoints and other outputs"
            )
        ends.append(cut[name])
    found: npt.NDArray[np.int64] = np.asarray(ends, np.int64)[np.asarray(inputs.indices)]
    return found


def question_keys(plan: Plan) -> dict[str, str]:
    """Return the key of each ask's question: of its name and of the node below."""
    below = {node.of.name: node.of.node_key for node in plan.nodes}
    return {ask.name: digest([ask.name, digest_of(below[ask.reads])]) for ask in plan.asks}


async def problems_of(
    store: ObjectStore, pipeline: str, partition: int, cuts: Iterable[Cut], plan: Plan | None = None
) -> list[str]:
    """Return why a replay up to these cuts would fail on its answers, or under a plan.

    Raises StoreError.
    """
    log, name, cuts = AnswerLog(store, pipeline, partition), answers_of(partition), list(cuts)
    try:
        await log.read()
        log.check(max((cut.get(name, 0) for cut in cuts), default=0))
        if plan is not None:
            log.check_plan(plan, cuts)
    except (InputError, PlanError) as error:
        return [str(error)]
    return []


class AnswerLog:
    """The answers of a partition, in order. Call ``open``, or ``read`` without becoming the owner.

    Invariants: the parts in ``_recorded`` follow each other without holes, from ``first`` to
    ``end``. ``_declared`` has per question the schema of its answers.
    """

    first = 0
    """The first offset that can be read from."""

    def __init__(
        self, store: ObjectStore, pipeline: str, partition: int = 0, *, guards: Guards = all_guards
    ) -> None:
        """Make no request yet. The store should retry failures."""
        prefix = f"{prefix_of(pipeline, partition)}answers/"
        self._journal = Journal(store, prefix, guards=guards)
        self._guards = guards
        self._known: dict[int, Added] = {}
        self._recorded: list[Recorded] = []
        self._declared: dict[str, tuple[str, pa.Schema]] = {}
        self._ends: list[int] = []

    @property
    def end(self) -> int:
        """The offset after the last answer."""
        return self._ends[-1] if self._ends else self.first

    async def newest_epoch(self) -> int:
        """Return the epoch of the newest owner, 0 for none. Raises StoreError."""
        return await self._journal.newest_epoch()

    async def open(self, epoch: int, random: Random) -> None:
        """Become the owner, and read the answers.

        Raises FencedError where another owner has this epoch or a higher one, StoreError, and
        InputError for a damaged object: no answer is guessed. Call ``read`` before.
        """
        self._take(await self._journal.open(epoch, random, self._known))
        self._known = {}

    async def read(self) -> None:
        """Read the present answers, and write nothing; raises as ``open``."""
        self._take(await self._journal.read(self._known))

    def check(self, offset: int) -> None:
        """Raise InputError unless the log reaches an offset."""
        if offset > self.end:
            raise InputError(
                f"{offset} answers of services were read, and their log holds {self.end}: it lies "
                "with the checkpoints, so give the folder of checkpoints that the outputs were "
                "written with, or begin with other outputs"
            )

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
                was = ", ".join(f"{field.name}: {field.type}" for field in list(declared[1])[_OWN:])
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
        needed = [field.name for field in ask.schema.fields if not field.optional]
        for one in self._recorded:
            if one.question == question:
                rows = fitted(one.rows, ask)
                answered = pc.is_null(rows.column(REASON))
                for name in needed:
                    null = rows.column(name).is_null()
                    if pc.any(pc.and_(answered, null)).as_py():
                        return name
        return None

    async def declare(self, plan: Plan) -> None:
        """Record the questions of a plan for all later rows; raises as ``add``."""
        asked = [
            (ask, question, answer_schema(_ask_of(plan, ask)))
            for ask, question in question_keys(plan).items()
        ]
        new = [
            Recorded(ask, question, self.end, _no_rows(schema))
            for ask, question, schema in asked
            if self._declared.get(question) != (ask, schema)
        ]
        if new:
            await self._put(new)

    async def add(self, parts: Sequence[Recorded]) -> None:
        """Add answers, from ``end`` on; they can be read once they are durable.

        Raises FencedError when another owner has begun, and LimitError where the log is full;
        after a StoreError it may be repeated.
        """
        if self._journal.length_bytes > LOG_BYTES_MAX:
            raise LimitError(
                f"the log of answers has reached {LOG_BYTES_MAX >> 20} MiB, with {self.end} "
                "answers: begin with another folder of checkpoints and outputs, from a later record"
            )
        await self._put(parts)

    async def _put(self, parts: Sequence[Recorded]) -> None:
        if self._guards("answer_put"):
            await self._journal.add(_encoded(parts))
        self._hold(parts)

    async def tidy(self) -> None:
        """Merge objects if there are too many; raises and may be repeated as ``add``."""
        if self._journal.objects <= ANSWER_OBJECTS_MAX:
            return
        declared = [
            Recorded(ask, question, self.first, _no_rows(schema))
            for question, (ask, schema) in self._declared.items()
        ]
        whole = [*declared, *_merged(self._recorded)]
        await self._journal.add(_encoded(whole), is_whole=True)
        self._forget()
        self._hold(whole)

    def _forget(self) -> None:
        self._recorded, self._ends = [], []
        self._declared.clear()

    def _hold(self, parts: Iterable[Recorded]) -> None:
        for one in parts:
            if not one.rows.num_rows:
                self._declared[one.question] = one.ask, one.rows.schema.remove_metadata()
            elif one.first != self.end:
                raise InputError(
                    f"the log of answers is damaged: after offset {self.end} follows {one.first}"
                )
            else:
                self._recorded.append(one)
                self._ends.append(one.end)

    def after(self, offset: int) -> Recorded | None:
        """Return answers from an offset on; None if there are none yet."""
        at = bisect_right(self._ends, offset)
        return self._recorded[at].from_offset(offset) if at < len(self._recorded) else None

    def _take(self, added: list[Added]) -> None:
        if self._journal.damage:
            raise InputError(
                f"the log of answers is damaged: {self._journal.damage[0]}. Restore that object, "
                "or begin with another folder of checkpoints and outputs"
            )
        self._forget()
        for one in added:
            self._hold(answers_in(one.data))


_OWN = 4  # columns before the fields of an answer


def _ask_of(plan: Plan, name: str) -> Ask:
    return next(one for one in plan.asks if one.name == name)


def _fits(recorded: pa.Schema, ask: Ask) -> bool:
    """Return whether recorded answers are answers of an ask: it may have new optional fields."""
    was = {field.name: field.type for field in list(recorded)[_OWN:]}
    now = {field.name: field for field in list(answer_schema(ask))[_OWN:]}
    optional = {field.name for field in ask.schema.fields if field.optional}
    known = all(name in now and now[name].type == kind for name, kind in was.items())
    return known and all(name in was or name in optional for name in now)


def fitted(rows: pa.RecordBatch, ask: Ask) -> pa.RecordBatch:
    """Return recorded answers with the fields of an ask; missing ones are null."""
    schema = answer_schema(ask)
    columns = [
        rows.column(field.name)
        if field.name in rows.schema.names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def divided(
    new: Iterable[tuple[str, pa.RecordBatch]], keys: Mapping[str, str], first: int
) -> tuple[list[Recorded], list[tuple[str, pa.RecordBatch]]]:
    """Return the new answers for one object, from offset ``first`` on, and the remaining ones."""
    left = list(new)
    taken: list[Recorded] = []
    room = OBJECT_BYTES_MAX
    while left:
        ask, rows = left[0]
        count = rows.num_rows
        while count > 1 and rows.slice(0, count).nbytes > room:
            count //= 2
        if taken and rows.slice(0, count).nbytes > room:
            break
        one = Recorded(ask, keys[ask], first, rows.slice(0, count))
        taken.append(one)
        room, first = room - one.rows.nbytes, one.end
        left[:1] = [(ask, rows.slice(count))] if count < rows.num_rows else []
    return _merged(taken), left


def _merged(parts: Iterable[Recorded]) -> list[Recorded]:
    """Merge consecutive parts of one question: batches of one row would be costly."""
    runs: list[list[Recorded]] = []
    for one in parts:
        last = runs[-1][-1] if runs else None
        if last and last.question == one.question and last.rows.schema == one.rows.schema:
            runs[-1].append(one)
        else:
            runs.append([one])
    return [
        replace(run[0], rows=pa.concat_batches([one.rows for one in run])) if run[1:] else run[0]
        for run in runs
    ]


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema)


def _encoded(parts: Iterable[Recorded]) -> bytes:
    """Return the parts as consecutive Arrow streams."""
    sink = pa.BufferOutputStream()
    for one in parts:
        about = {_ASK: one.ask, _QUESTION: one.question, _FIRST: str(one.first)}
        rows = one.rows.replace_schema_metadata(about)
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_batch(rows)
    return cast("bytes", sink.getvalue().to_pybytes())


def answers_in(data: bytes) -> list[Recorded]:
    """Return the answers of one object."""
    source, found = pa.BufferReader(data), list[Recorded]()
    while source.tell() < len(data):
        with pa.ipc.open_stream(source) as reader:
            (rows,) = reader
            about = reader.schema.metadata
            # Closing reads to the end of the stream, the beginning of the next one.
        rows = rows.replace_schema_metadata(None)
        ask, question = about[_ASK].decode(), about[_QUESTION].decode()
        found.append(Recorded(ask, question, int(about[_FIRST]), rows))
    return found
