"""History of branches and of several sources becomes the state with which a run begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from ripple.core.errors import InputError
from ripple.model.pipeline.file import load_plan
from ripple.spark.backfill.given import history_at, history_texts
from ripple.spark.backfill.live import Live
from ripple.spark.backfill.receipt import BackfillError
from ripple.spark.backfill.seam import NOTHING
from tests.examples import EXAMPLES
from tests.spark.backfills import BEGIN, SECOND, UNTIL
from tests.spark.graph_places import OUTPUTS, Place
from tests.spark.logs import topic_of

WAYS = [
    ("branches", (3,)),
    ("finals", (1,)),
    ("ending", (2,)),
    ("market", (4, 2)),
    ("joined", (4, 2)),
    ("united", (2, 3)),
    ("listed", (4, 2)),
    ("lasts", (4, 2)),
]
# What has several inputs above, over one of each source: some of them.
SINGLE = [
    ("branches", (1,)),
    ("ending", (1,)),
    ("market", (1, 1)),
    ("united", (1, 1)),
    ("listed", (1, 1)),
]


@pytest.mark.parametrize(("name", "partitions"), WAYS + SINGLE[:: 3 if EXAMPLES == 1 else 1])
def test_a_run_from_history_has_the_folds_of_one_that_read_everything(
    name: str, partitions: tuple[int, ...], tmp_path: Path
) -> None:
    place = Place(tmp_path, name, partitions)
    receipt = place.backfilled(partitions=1)
    assert not receipt.broken()
    assert not receipt.unproven()
    inputs = [one["name"] for part in receipt.partitions for one in part["inputs"]]
    assert len(inputs) == sum(partitions), "the receipt has a cut for each input of each source"
    expected = place.run(place.whole, "whole-store")
    found = place.run(place.live, "store")
    for output in OUTPUTS[1:]:
        assert found.digests[output] == expected.digests[output]
    assert found.table("rows-out").num_rows == expected.table("rows-out").num_rows > 0
    for counts, whole in zip(
        found.counters_by_source.values(), expected.counters_by_source.values(), strict=True
    ):
        assert (counts.consumed, counts.applied) == (whole.consumed, whole.applied)
    # Events of history are in no output, and those of the log once, also after another start.
    live = [one for one in place.shown("whole-store") if one["t"] >= UNTIL]
    for _ in range(2):
        assert sorted(place.shown("store"), key=repr) == sorted(live, key=repr)
        place.run(place.live, "store")


# A node that holds rows, and how far below the watermark rows follow: the lateness, and the span.
HOLDING = [
    ("asof", (1, 1), 10),
    ("venues", (1, 1), 5),
    ("near", (2, 2), 7),
    ("later", (1, 1), 7),
    ("once", (2,), 60),
    ("once_of_both", (2, 2), 3),
]


@pytest.mark.parametrize(("name", "partitions", "back_s"), HOLDING)
def test_rows_that_wait_when_history_ends_follow_in_the_run(
    name: str, partitions: tuple[int, ...], back_s: int, tmp_path: Path
) -> None:
    place = Place(tmp_path, name, partitions)
    (part,) = place.backfilled(partitions=1).partitions
    expected = place.run(place.whole, "whole-store")
    found = place.run(place.live, "store")
    for output in OUTPUTS[1:]:
        assert found.digests[output] == expected.digests[output]
    mark_ns = min(part["watermarks_ns"].values()) - back_s * SECOND
    rows = place.following(place.shown("whole-store"), mark_ns)
    for _ in range(2):  # each row once, also after another start
        assert sorted(place.shown("store"), key=repr) == rows
        place.run(place.live, "store")


def test_partitions_of_nodes_that_hold_rows_have_their_parts_of_history(tmp_path: Path) -> None:
    place = Place(tmp_path, "near", (2, 2))
    one, two = (place.backfilled(partitions=count, adopts=False) for count in (1, 2))
    for output in OUTPUTS[1:]:
        assert one.digests[output] == two.digests[output]
    (tmp_path / "apart").mkdir()
    eager = load_plan(f"{tmp_path}/p.py:eager")
    with pytest.raises(InputError, match="at has emit='eager', and names rows by their offsets"):
        Live.at(place.live, eager, UNTIL)
    apart = Place(tmp_path / "apart", "venues", (2, 2))
    with pytest.raises(InputError, match="partition only, since the sides of venues have other"):
        Live.at(apart.live, apart.plan, UNTIL)


def test_partitions_of_branches_have_their_parts_of_history(tmp_path: Path) -> None:
    place = Place(tmp_path, "branches", (6,))
    one, three = (place.backfilled(partitions=count, adopts=False) for count in (1, 3))
    for output in ("events", "rows-out"):  # an input without records holds all windows open
        assert one.digests[output] == three.digests[output]
    assert [len(part["inputs"]) for part in three.partitions] == [2, 2, 2]


def test_partitions_of_several_sources_have_their_inputs_of_each(tmp_path: Path) -> None:
    place = Place(tmp_path, "united", (4, 2))
    one, two = (place.backfilled(partitions=count, adopts=False) for count in (1, 2))
    for output in ("events", "rows-out"):
        assert one.digests[output] == two.digests[output]
    assert [[each["name"] for each in part["inputs"]] for part in two.partitions] == [
        ["trades/0", "trades/2", "others/0"],
        ["trades/1", "trades/3", "others/1"],
    ]


def test_a_table_has_no_history_but_its_topic(tmp_path: Path) -> None:
    place = Place(tmp_path, "listed", (4, 2))
    two = place.backfilled(partitions=2, adopts=False)
    cuts = {one["name"]: one for part in two.partitions for one in part["inputs"]}
    assert cuts["trades/0"]["offset"] > 0
    for name in ("listings/0", "listings/1"):
        assert (cuts[name]["offset"], cuts[name]["verdict"]) == (0, NOTHING)
    texts = history_texts(place.plan, ["trades=a.csv"], place.live)
    assert texts == ["trades=a.csv", f"listings={place.live['listings']}"]
    file = place.history["trades"]
    with pytest.raises(InputError, match="listings is a table: offsets tell the newest record"):
        history_at({**place.history, "listings": file}, place.plan, place.live)
    alone = load_plan(f"{tmp_path}/p.py:listings_alone")
    with pytest.raises(InputError, match="market reads tables alone, and a topic holds its table"):
        history_at(file, alone, place.live["listings"])


def test_a_gap_in_one_of_several_sources_is_told(tmp_path: Path) -> None:
    place = Place(tmp_path, "united", (1, 1))
    file = Path(place.history["others"])
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:-5]))
    receipt = place.backfilled(adopts=False)
    with pytest.raises(BackfillError, match="others: 5 records of the log are missing in history"):
        receipt.check(allows_unproven=False)


def test_a_live_input_that_cannot_continue_is_refused(tmp_path: Path) -> None:
    place = Place(tmp_path, "united", (4, 3))
    with pytest.raises(
        InputError, match="be read in 1 partitions, which cannot be divided among 2"
    ):
        Live.at(place.live, place.plan, UNTIL, 2)
    with pytest.raises(InputError, match="source 'others' is not given"):
        Live.at({"trades": place.live["trades"]}, place.plan, UNTIL)
    same = dict.fromkeys(place.live, place.live["trades"])
    with pytest.raises(InputError, match="'trades' and 'others' read the same records"):
        Live.at(same, place.plan, UNTIL)
    event = {"symbol": "A", "price": 1.0, "size": 1, "t": BEGIN + SECOND}
    rotated = topic_of(tmp_path / "r", place.plan, [event], partitions=2, source="others")
    with pytest.raises(InputError, match="its records have no key, so records of history"):
        Live.at({**place.live, "others": rotated}, place.plan, UNTIL)
