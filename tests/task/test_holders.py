"""A checkpoint that says what was committed beats a record of it that is not there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ripple.connectors.commit_group import OutputStatus
from ripple.connectors.contract import Commit
from ripple.core.errors import OutputError
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
def test_new_holders_of_state_are_accepted(before: str, now: dict[str, OutputStatus]) -> None:
    check_holders(checkpoints(holders(standing(before))), now)
    check_holders([], now)
