"""A few real kills; ``make kill`` does many."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.task.kill_nine import Outputs, Place, ProgramPlace, append, killed, undisturbed

TRADES = 12_000


@pytest.fixture(scope="module")
def topic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    topic = tmp_path_factory.mktemp("kills") / "trades"
    append(topic, TRADES)
    return topic


@pytest.fixture(scope="module")
def expected(topic: Path) -> Outputs:
    return undisturbed(Place(topic.parent / "undisturbed", topic))


@pytest.mark.services
@pytest.mark.parametrize("place", [Place, ProgramPlace])
def test_outputs_of_a_killed_run_are_those_of_an_undisturbed_one(
    place: type[Place], topic: Path, expected: Outputs, tmp_path: Path
) -> None:
    found = killed(place(tmp_path / "killed", topic), TRADES, kills=3, seed=1)
    assert found.kills >= 2
    assert found.outputs == expected
