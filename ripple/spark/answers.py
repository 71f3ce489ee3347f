"""The answers of services that a durable run or a cluster recorded, for a replay."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa

from ripple.core.errors import InputError
from ripple.engine.operators.answer_names import INPUT, OFFSET
from ripple.model.batch import Answers
from ripple.model.pipeline.input_names import answers_of, is_answers
from ripple.model.window import watermark
from ripple.spark.checkpoint_check import checkpoints_at
from ripple.storage.store.opening import store_to_read
from ripple.task.asks.answer_log import AnswerLog, question_keys
from ripple.task.asks.answer_objects import fitted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ripple.core.cut import Cut
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.portions import Sources
    from ripple.task.asks.answer_objects import Recorded

ANSWERS = answers_of(0)
"""The name of all logs, as one input."""


@dataclass(frozen=True, slots=True)
class RecordedAnswers:
    """The logs of answers in a store: per partition, from which offset to which they are read."""

    store: str
    pipeline: str
    logs: tuple[tuple[int, int, int], ...]

    @property
    def first(self) -> int:
        """The offset at which they begin, as one input."""
        return sum(first for _, first, _ in self.logs)


def answered(sources: Sources, place: str, plan: Plan) -> Sources:
    """Return the sources with the answers in the checkpoints at ``place``: a folder, or S3.

    It may be the store of a cluster. Raises InputError where none are there, PlanError where they
    are to other questions, and StoreError.
    """
    store, numbers = checkpoints_at(place, plan)
    logs = asyncio.run(_logs(store, plan, numbers, sources))
    if not logs:
        raise InputError(
            f"{place} has no answers of pipeline {plan.name!r}: name the folder of checkpoints of "
            "the run that has asked"
        )
    return replace(sources, answers=RecordedAnswers(store, plan.name, logs))


def up_to(answers: RecordedAnswers, cuts: Collection[Cut], place: str) -> RecordedAnswers:
    """Return the answers that count at the cuts of partitions, of the run at ``place``.

    Raises InputError where the run has counted answers that these are not.
    """
    counted = {name: end for cut in cuts for name, end in cut.items() if is_answers(name)}
    logs = tuple(
        (number, first, counted.pop(answers_of(number), first)) for number, first, _ in answers.logs
    )
    lacks = any(counted.values())
    for (_, first, end), (_, _, known) in zip(logs, answers.logs, strict=True):
        lacks = lacks or not first <= end <= known
    if lacks:
        raise InputError(
            f"the run of {place} has counted other answers than {answers.store} holds: give "
            "--answers DIR (answers=), the folder of its checkpoints or the store of the cluster"
        )
    return replace(answers, logs=logs)


async def _logs(
    place: str, plan: Plan, numbers: Collection[int], sources: Sources
) -> tuple[tuple[int, int, int], ...]:
    found = []
    async with store_to_read(place, "--answers") as store:
        for number in numbers:
            log = AnswerLog(store, plan.name, number)
            await log.read()
            log.check_plan(plan, ())
            missing = log.undeclared(plan)
            if missing and not log.end:
                continue  # of a later stage, or of a run that has not asked
            if missing:
                names = ", ".join(map(repr, missing))
                raise InputError(
                    f"{place} has no answers to {names} as this pipeline asks it: its name or a "
                    "step before it has changed since; replay the pipeline that was run"
                )
            sources.check_inputs(log.inputs, f"{place} has answers to records of")
            await log.check_segments()
            found.append((number, log.first, log.end))
    return tuple(found)


class AnswersReader:
    """Hands out recorded answers, each once its record was read. A context manager."""

    def __init__(self, answers: RecordedAnswers | None, plan: Plan) -> None:
        """Open nothing yet. answers: None for none."""
        self._answers = answers
        self._asks = {ask.name: ask for ask in plan.asks}
        self._keys = question_keys(plan)
        self._offset = 0 if answers is None else answers.first
        self._at = [] if answers is None else [first for _, first, _ in answers.logs]
        self._logs: list[tuple[AnswerLog, int]] = []
        self._closing = AsyncExitStack()
        self._loop = asyncio.Runner()

    def __enter__(self) -> Self:
        """Read the logs. Raises InputError and StoreError."""
        if self._answers is not None:
            self._loop.run(self._open(self._answers))
        return self

    def __exit__(self, *_: object) -> None:
        """Release the store."""
        if self._answers is not None:
            self._loop.run(self._closing.aclose())
        self._loop.close()

    async def _open(self, given: RecordedAnswers) -> None:
        store = await self._closing.enter_async_context(store_to_read(given.store))
        for number, _, end in given.logs:
            log = AnswerLog(store, given.pipeline, number)
            await log.read()
            log.check(end)
            self._logs.append((log, end))

    def known(self, cut: Cut) -> Iterator[Answers]:
        """Yield the next answers, as far as their records are before ``cut``."""
        for rank, (log, end) in enumerate(self._logs):
            while (one := self._next(rank, log, end)) is not None:
                rows = one.known(cut, end)
                if not rows.num_rows:
                    break
                yield self._taken(rank, one, rows, rows)

    def rest(self, cut: Cut) -> Iterator[Answers]:
        """Yield the remaining answers to records before ``cut``; a range may end before others."""
        for rank, (log, end) in enumerate(self._logs):
            while (one := self._next(rank, log, end)) is not None:
                rows = one.rows.slice(0, end - one.first)
                ends = np.array([cut.get(name, 0) for name in rows.column(INPUT).to_pylist()])
                read = np.asarray(rows.column(OFFSET)) < ends
                yield self._taken(rank, one, rows, rows.filter(pa.array(read)))

    def _next(self, rank: int, log: AnswerLog, end: int) -> Recorded | None:
        at = self._at[rank]
        if at >= end:
            return None
        if not log.is_loaded(at):
            self._loop.run(log.load(at))
        return log.after(at)

    def _taken(
        self, rank: int, one: Recorded, taken: pa.RecordBatch, rows: pa.RecordBatch
    ) -> Answers:
        self._at[rank] += taken.num_rows
        self._offset += taken.num_rows
        ask = self._asks.get(one.ask)
        if ask is None or self._keys[one.ask] != one.question:
            return Answers(watermark.NONE, self._offset, "", rows)  # other code had this question
        return Answers(watermark.NONE, self._offset, one.ask, fitted(rows, ask))
