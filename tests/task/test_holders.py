"""A checkpoint that says what was committed beats a record of it that is not there."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ripple.connectors.commit_group import OutputStatus
from ripple.connectors.contract import Commit
from ripple.core.errors import OutputError
from ripple.task.downstream import DownstreamTask
from ripple.task.lifecycle import PartitionTask
from ripple.task.restore import check_holders, holders


def standing(holder: str, committed: Commit | None = None) -> dict[str, OutputStatus]:
    return {"o": OutputStatus("kafka:b/o", True, committed, None, holder=holder)}


def checkpoints(notes: dict[str, str]) -> Any:
    return [SimpleNamespace(name="c", cut={"s": 7}, notes=notes)]


def test_rows_whose_cut_is_gone_are_not_written_again() -> None:
    listed = checkpoints(holders(standing("id")))
    with pytest.raises(OutputError, match=r"kafka:b/o has no record .* checkpoint c at 7"):
        check_holders(listed, standing("id"))


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("id", standing("id", Commit({"s": 7}, ""))),
        ("id", standing("other")),  # removed, and made anew
        ("id", standing("")),  # nobody can tell
        ("", standing("id")),  # new, or of a checkpoint that does not say
        ("", standing("")),
    ],
)
def test_what_is_new_begins(before: str, now: dict[str, OutputStatus]) -> None:
    check_holders(checkpoints(holders(standing(before))), now)
    check_holders([], now)


def stage(committed: dict[str, int] | None, notes: dict[str, str]) -> Any:
    """Return a partition of a later stage whose output has no record of its cut."""

    async def claimed() -> Any:
        return SimpleNamespace(epoch=1)

    async def listed() -> Any:
        return checkpoints(notes)

    async def opened(*_: object) -> dict[str, OutputStatus]:
        return standing("id")

    life: Any = DownstreamTask.__new__(DownstreamTask)
    PartitionTask.__init__(life, lambda: False)
    life._standings, life._committed, life._emit = standing("id"), committed, None
    life._claim = claimed
    life._checkpoints = SimpleNamespace(list=listed)
    life.engine = SimpleNamespace(digests={"o": ""})
    life._outputs = SimpleNamespace(open=opened, mark=lambda _: "", close=lambda: None)
    return life


def test_later_stages_know_it_too_from_their_first_commit_on() -> None:
    assert stage(None, {})._holders == {}, "a checkpoint of nothing comes before it"
    notes = stage({"s": 7}, {})._holders
    assert notes == holders(standing("id"))
    with pytest.raises(OutputError, match="has no record of how far it was committed"):
        asyncio.run(stage(None, notes).run())
