"""Node keys, hashes and descriptions of existing pipelines stay as they are, byte for byte."""

from __future__ import annotations

import pytest

from tests.model.pipeline.golden_plans import FILES, golden, pinned, plan_in


@pytest.mark.parametrize("path", FILES)
def test_a_plan_has_the_keys_that_its_stores_were_written_with(path: str) -> None:
    assert pinned(plan_in(path)) == golden()[path]


def test_every_pinned_plan_is_compared() -> None:
    assert set(golden()) == set(FILES)
