"""Checks the outputs of a future run, without claiming or writing anything."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ripple.cli.lib.silence import is_silence
from ripple.connectors.commit_group import looked_at
from ripple.connectors.files.text import cut_record
from ripple.connectors.locate import check_sealed, path_of, reached_at
from ripple.control.secrets import without_secrets
from ripple.core.errors import RippleError
from ripple.task.grouping import group_at
from ripple.world.errors import DiskLockedError
from ripple.world.live_disk import LiveDisk
from ripple.world.ports import INLINE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.connectors.connector import Part
    from ripple.connectors.contract import Commit
    from ripple.core.cut import Cut
    from ripple.model.pipeline.plan import Plan


class Seen(NamedTuple):
    """Findings. new: empty outputs; problems: reasons for which a run would be refused.

    silent: outputs of servers without an answer: their state is unknown. cuts: those committed.
    """

    new: tuple[str, ...]
    problems: tuple[str, ...]
    remarks: tuple[str, ...]
    silent: tuple[str, ...]
    cuts: tuple[Cut, ...]


def seen_at(plan: Plan, places: Mapping[str, str], part: Part | None = None) -> Seen:
    """Examine each output, by its URI; part: the partition of a cluster, None of ripple run."""
    new: list[str] = []
    problems: list[str] = []
    remarks: list[str] = []
    silent: list[str] = []
    cuts: list[Cut] = []
    for output, place in places.items():
        try:
            if part is not None:
                check_sealed(place)
            asyncio.run(_look(plan, output, place, part))
            is_new, commit = _committed(plan, output, place, part)
            if is_new:
                new.append(output)
            if commit is not None:
                cuts.append(commit.cut)
        except DiskLockedError as error:  # most likely of the run to be replaced
            remarks.append(without_secrets(str(error)))
        except (RippleError, OSError) as error:
            problems.append(without_secrets(str(error)))
            if is_silence(error):
                silent.append(output)
    return Seen(tuple(new), tuple(problems), tuple(remarks), tuple(silent), tuple(cuts))


async def _look(plan: Plan, output: str, place: str, part: Part | None) -> None:
    group = group_at({output: place}, plan, INLINE, part=part, waits=False)
    try:
        await looked_at(group, None)
    finally:
        await group.close()


def _committed(
    plan: Plan, output: str, place: str, part: Part | None
) -> tuple[bool, Commit | None]:
    """Return whether an output is empty, and its commit, None if there is none or it is unknown."""
    asks = reached_at(place, plan, output, part)
    if asks is not None:
        commit = asks()
        return commit is None, commit
    path = path_of(place, "continued_sink")
    if path is None:
        return False, None
    file = Path(path)
    if not file.exists():
        return True, None
    # A run that failed leaves a file with nothing that counts.
    record = cut_record.read(LiveDisk(file.parent, make=False), f"{file.name}.cut")
    commit = None if record is None else record.reached
    return record is not None and commit is None, commit
