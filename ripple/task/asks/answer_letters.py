"""The failures in a log of answers, as dead letters.

The letter of a failure has the log as its input, the offset of its entry, the ask as its step, and
the asked row as its record. Its version is the digest of the question.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from ripple.connectors.letter import REASON_CHARACTERS_MAX, Letter
from ripple.connectors.raw_record import raw_of
from ripple.core.errors import InputError
from ripple.engine.operators.answer_names import REASON, ROW
from ripple.model.pipeline.input_names import answers_of
from ripple.task.asks.answer_log import AnswerLog
from ripple.task.dead_letters.log import Found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.task.asks.answer_objects import Recorded
    from ripple.world.ports import ObjectStore

FAILURES_BYTES_MAX = 32 << 20
"""The bytes of rows and reasons of the newest failures, which are returned."""


async def failures_in(store: ObjectStore, pipeline: str, partition: int = 0) -> Found:
    """Return the newest failures, in order; any process may, at any time. Raises StoreError."""
    log, name = AnswerLog(store, pipeline, partition), answers_of(partition)
    found: deque[Letter] = deque()
    length_bytes = passed = 0
    damage: list[str] = []
    try:
        await log.read()
        at = log.first
        while at < log.end:
            await log.load(at)
            part = log.after(at)
            assert part is not None
            at = part.end
            for letter in _failures(part, pipeline, name):
                found.append(letter)
                length_bytes += _size(letter)
                while length_bytes > FAILURES_BYTES_MAX and len(found) > 1:
                    length_bytes -= _size(found.popleft())
                    passed += 1
    except InputError as error:
        damage.append(str(error))
    if passed:
        damage.append(f"of the failures in {name} {passed} are older than {found[0].offset}")
    return Found(list(found), tuple(damage))


def _failures(part: Recorded, pipeline: str, name: str) -> Iterator[Letter]:
    failed = pc.indices_nonzero(part.rows.column(REASON).is_valid()).to_pylist()
    has_rows = ROW in part.rows.schema.names
    for at in failed:
        letter = Letter(
            input=name,
            offset=part.first + at,
            line_number=None,
            reason=part.rows.column(REASON)[at].as_py()[:REASON_CHARACTERS_MAX],
            step=part.ask,
            pipeline=pipeline,
            version=part.question,
            raw=b"",
            record=part.rows.column(ROW)[at].as_py() if has_rows else None,
            written_ns=0,
        )
        yield letter if letter.record is None else _with_text(letter)


def _with_text(letter: Letter) -> Letter:
    return replace(letter, raw=raw_of(letter.row(), 0))


def _size(letter: Letter) -> int:
    return len(letter.record or b"") + len(letter.raw) + len(letter.reason)
