"""Names of steps in other libraries: the error has the way to write them here."""

from __future__ import annotations

import copy
import re

import pytest

import ripple as rp
from ripple.model.pipeline.other_names import _HERE

PIPELINE = rp.Pipeline("p")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("union", r"rp\.union\("),
        ("concat", r"rp\.union\("),
        ("group_by", r"\.partition\(.*\.fold\("),
        ("groupBy", r"\.partition\(.*\.fold\("),
        ("agg", r"\.fold\("),
        ("with_columns", r"\.derive\("),
        ("drop_duplicates", r"\.distinct\("),
        ("merge_asof", r"\.join_asof\(.*emit="),
        ("join_where", r"\.join_interval\(.*emit="),
        ("write_csv", r"\.sink\("),
        ("mapValues", r"\.map\("),
    ],
)
def test_step_of_another_library_is_refused_with_the_way_to_write_it(name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=f"'Pipeline' object .* '{name}': write .*{said}"):
        getattr(PIPELINE, name)


def test_other_names_are_unknown_as_in_any_class_and_suggest_near_ones() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'sinks'$") as it:
        PIPELINE.sinks  # type: ignore[attr-defined]  # noqa: B018
    assert (it.value.name, it.value.obj) == ("sinks", PIPELINE)
    assert not hasattr(PIPELINE, "union")
    assert "union" not in dir(PIPELINE)
    assert copy.copy(PIPELINE).name == "p"


@pytest.mark.parametrize("written", sorted(set(_HERE.values())))
def test_each_hint_names_existing_steps_and_functions(written: str) -> None:
    for owner, name in re.findall(r"(rp)?\.([a-z_]\w*)\(", written):
        assert hasattr(rp if owner else rp.Pipeline, name), name
