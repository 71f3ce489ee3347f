"""Versions of the assignment as JSON: a round trip, and strict reading."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ripple.control.assignment import Assignment, AssignmentError, Share, Stage, empty
from ripple.control.assignment.form import AssignmentContent
from ripple.control.assignment.version import PARTITIONS_MAX
from ripple.storage.fenced import BYTES_MAX
from tests.control.assignment.examples import CODE, example, member

FORM = AssignmentContent()


def written(assignment: Assignment) -> dict[str, Any]:
    held: dict[str, Any] = json.loads(json.dumps(FORM.to_fields(assignment)))
    return held


DIVIDED = empty([Stage("repartition-quotes", 2, "symbol"), Stage("main", 5)])


@pytest.mark.parametrize("assignment", [example(), empty([Stage("trades", 5)]), DIVIDED])
def test_written_version_is_read(assignment: Assignment) -> None:
    assert FORM.from_fields(written(assignment)) == assignment


def test_endpoints_of_members_are_kept() -> None:
    said = replace(CODE, ends=(("output out", "log:/b/v"), ("source", "log:/a/trades")))
    one = example()
    one = one.with_members(replace(each, code=said) for each in one.members)
    assert FORM.from_fields(written(one)) == one


def test_form_is_pinned() -> None:
    """Stored versions outlive the release that wrote them."""
    assert json.dumps(written(example())) == (
        '{"form": 2, "version": 7, "cause": "w2 joins", '
        '"stages": [["trades", 3], ["portfolio", 1]], '
        '"shares": [["w1/0", 3, null, null, "w2/0"], ["w1/0", 5, "w2/0", null, null], '
        '["w2/1", 7, null, "w1/0", null], [null, 0, null, null, null]], '
        '"codes": [["vwap", "plan-1", "topology-1", 1, [["trades", "5f"], ["vwap", "a0"]], '
        '[["main", 0]]]], '
        '"members": [{"id": "w1", "incarnation": 3, "nonce": "w1-3", '
        '"addresses": [["deltas", "w1:9101"]], "starts": [0], "code": 0, "leaving": false}, '
        '{"id": "w2", "incarnation": 7, "nonce": "w2-7", "addresses": [["deltas", "w2:9101"]], '
        '"starts": [0, 0], "code": 0, "leaving": false}], '
        '"pins": [[0, "w1", "its cache"]], "frozen": "maintenance", "inputs": [["trades", 12]]}'
    )


def test_a_form_of_another_release_is_refused_with_what_to_do() -> None:
    with pytest.raises(AssignmentError, match=r"has form 3, this version of Ripple reads 2: upg"):
        FORM.from_fields(written(example()) | {"form": 3})


def test_a_field_too_many_is_refused_and_named() -> None:
    with pytest.raises(AssignmentError, match="has 'weights', which this version ignores"):
        FORM.from_fields(written(example()) | {"weights": []})


@pytest.mark.parametrize("field", [name for name in written(example()) if name != "form"])
@pytest.mark.parametrize("value", ["absent", True, 1.5, [[["deep"]]], [7], {"a": 1}])
def test_a_field_of_another_kind_is_refused_and_named(field: str, value: object) -> None:
    held = written(example())
    if value == "absent":
        del held[field]
    else:
        held[field] = value
    with pytest.raises(AssignmentError, match=field):
        FORM.from_fields(held)


@pytest.mark.parametrize(
    "share",
    [
        Share("w9/0", 3),
        Share("w2/2", 7),
        Share("w1/0", 0),
        Share("w1/0", 8),
        Share(None, 3),
        Share(None, 0, next="w1/0"),
        Share("w1/0", 3, next="w1/0"),
        Share("w1/0", 3, next="w2/0", former="w2/1"),
        Share("w1/0", 3, standby="w1/0"),
        Share("w1/0", 3, standby="w9/0"),
    ],
)
def test_a_share_that_breaks_a_rule_is_refused(share: Share) -> None:
    broken = replace(example(), shares=(share, *example().shares[1:]))
    with pytest.raises(AssignmentError, match="partition 0"):
        FORM.from_fields(written(broken))


def test_members_twice_or_from_the_future_are_refused() -> None:
    for members in ((member("w1", 3), member("w1", 4)), (member("w2", 7), member("w1", 3))):
        with pytest.raises(AssignmentError, match="not sorted, or one is there twice"):
            FORM.from_fields(written(replace(example(), members=members)))
    with pytest.raises(AssignmentError, match="incarnation 8, not from 1 to 7"):
        FORM.from_fields(written(example().with_members([member("w1", 3), member("w2", 8, 2)])))


def test_the_largest_cluster_fits_into_an_entry() -> None:
    members = [member(f"ripple-worker-{number}", 1_000_000) for number in range(256)]
    processes = [process for one in members for process in one.processes]
    shares = [
        Share(processes[p % 256], 1_000_000, next=processes[(p + 1) % 256])
        for p in range(PARTITIONS_MAX)
    ]
    whole = replace(
        empty([Stage("trades", PARTITIONS_MAX)]), version=1_000_000, shares=tuple(shares)
    ).with_members(members)
    assert FORM.from_fields(written(whole)) == whole
    assert len(json.dumps(written(whole))) < BYTES_MAX * 0.8
