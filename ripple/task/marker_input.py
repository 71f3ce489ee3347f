"""The logs of a partition as inputs, of markers and of answers: whether they are, and their place.

A cut from before the pipeline had ``idle``, or an ask, does not name it: no entry was read.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from ripple.model.pipeline.input_names import is_answers, is_markers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.connectors.contract import Commit
    from ripple.core.cut import Cut
    from ripple.storage.checkpoint import Checkpoint


def has_markers(cuts: Iterable[Cut]) -> bool:
    """Return whether markers were read: once so, they are read for ever."""
    return any(map(is_markers, chain.from_iterable(cuts)))


def has_answers(cuts: Iterable[Cut]) -> bool:
    """Return whether answers were read: once so, they are read for ever."""
    return any(map(is_answers, chain.from_iterable(cuts)))


def checkpoints_with(name: str, listed: Iterable[Checkpoint]) -> tuple[Checkpoint, ...]:
    """Return checkpoints whose cuts name a log."""
    return tuple(replace(one, cut={name: 0, **one.cut}) for one in listed)


def commit_with(name: str, commit: Commit | None) -> Commit | None:
    """Return a commit whose cut names a log."""
    return None if commit is None else commit._replace(cut={name: 0, **commit.cut})
