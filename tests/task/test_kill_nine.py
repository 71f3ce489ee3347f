"""A few real kills; ``make kill`` does many."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.task.kill_nine import Place, ProgramPlace, append, killed, undisturbed

TRADES = 12_000


@pytest.mark.parametrize("place", [Place, ProgramPlace])
def test_outputs_of_a_killed_run_are_those_of_an_undisturbed_one(
    place: type[Place], tmp_path: Path
) -> None:
    append(tmp_path / "trades", TRADES)
    expected = undisturbed(Place(tmp_path / "undisturbed", tmp_path / "trades"))
    found = killed(place(tmp_path / "killed", tmp_path / "trades"), TRADES, kills=3, seed=1)
    assert found.kills >= 2
    assert found.outputs == expected
