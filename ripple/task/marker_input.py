"""The log of a partition's markers as an input: whether it is one, and its place in cuts.

A cut from before the pipeline had ``idle`` does not name it: nothing of it was read.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from ripple.model.pipeline.input_names import is_markers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.connectors.contract import Commit
    from ripple.core.cut import Cut
    from ripple.storage.checkpoint import Checkpoint


def has_markers(cuts: Iterable[Cut]) -> bool:
    """Return whether markers were read: once so, they are read for ever."""
    return any(map(is_markers, chain.from_iterable(cuts)))


def checkpoints_with(name: str, listed: Iterable[Checkpoint]) -> tuple[Checkpoint, ...]:
    """Return checkpoints whose cuts name the log of markers."""
    return tuple(replace(one, cut={name: 0, **one.cut}) for one in listed)


def commit_with(name: str, commit: Commit | None) -> Commit | None:
    """Return a commit whose cut names the log of markers."""
    return None if commit is None else commit._replace(cut={name: 0, **commit.cut})
