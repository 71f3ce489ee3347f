"""A few real kills; ``make kill`` does many."""

from __future__ import annotations

from pathlib import Path

from tests.task.kill_nine import Place, append, killed, undisturbed

TRADES = 12_000


def test_outputs_of_a_killed_run_are_those_of_an_undisturbed_one(tmp_path: Path) -> None:
    append(tmp_path / "trades", TRADES)
    expected = undisturbed(Place(tmp_path / "undisturbed", tmp_path / "trades"))
    found = killed(Place(tmp_path / "killed", tmp_path / "trades"), TRADES, kills=3, seed=1)
    assert found.kills >= 2
    assert found.outputs == expected
