"""The columns of outputs, as ``ripple query --list`` has them."""

from __future__ import annotations

import pytest

from ripple.cli.cluster.query import listed_column
from ripple.model.schema.types import Field, String


@pytest.mark.parametrize(
    ("named", "shown", "listed"),
    [
        ("n: int64", None, "n: int64"),
        ("a: b: int64", "date32[day]", "a: b: date32[day]"),
        ("l: list<item: int64>", None, "l: list<item: int64>"),
        ("l: list<item: int64>", "list<item: date32[day]>", "l: list<item: date32[day]>"),
    ],
)
def test_a_column_has_its_shown_type_once(named: str, shown: str | None, listed: str) -> None:
    assert listed_column(Field(named, String(), doc=shown)) == listed
