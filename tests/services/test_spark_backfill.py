"""History on Spark becomes what a run goes on from; an interrupted backfill is gone on with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ripple.spark.backfill.receipt import Receipt
from tests.cli.processes import RIPPLE, run
from tests.services.spark_session import MARKS, spark
from tests.spark.backfills import SECOND, TRADES, UNTIL, Place
from tests.spark.graph_places import OUTPUTS
from tests.spark.graph_places import Place as Graph

pytestmark = MARKS
__all__ = ["spark"]


def backfill(
    spark: Any, place: Place, store: str = "store", history: Any = None, **options: Any
) -> Any:
    from ripple.spark import Backfill

    return Backfill(
        spark,
        f"{place.file}:minutes",
        f"csv:{place.folder}/history" if history is None else history,
        until_ns=UNTIL,
        live=place.live,
        store=str(place.folder / store),
        **options,
    )


def test_run_continues_from_history(spark: Any, tmp_path: Path) -> None:
    place = Place(tmp_path, 2)
    told: list[str] = []
    one = backfill(spark, place, partitions=1)
    receipt = one.run(show=lambda standing: told.append(standing.text()))
    assert receipt.rows == sum(one["t"] < UNTIL for one in TRADES)
    assert backfill(spark, place, partitions=1).run().as_dict() == receipt.as_dict()
    found = place.digest("minutes", place.live, "store")
    expected = place.digest("minutes", place.whole, "whole-store")
    assert found.splitlines()[0] == expected.splitlines()[0]
    assert backfill(spark, place, partitions=1).check(receipt) == []
    (state,) = (tmp_path / "store" / "minutes" / "backfill").glob("*/00000/*.arrow")
    state.write_bytes(state.read_bytes()[:-9])
    (problem,) = backfill(spark, place, partitions=1).check(receipt)
    assert "is cut" in problem


def test_an_interrupted_backfill_does_what_is_missing(spark: Any, tmp_path: Path) -> None:
    place = Place(tmp_path, 4)
    whole = backfill(spark, place, "other").run()
    again = backfill(spark, place)
    again._parts(frozenset({0, 2}), keeps=True, show=None)
    assert not list((tmp_path / "store").glob("**/origin.json")), "nothing half-adopted"
    laid = {path: path.stat().st_mtime_ns for path in (tmp_path / "store").glob("**/*.arrow")}
    assert 2 <= len(laid) <= 3  # the ones that were not asked for are there, or without keys
    assert backfill(spark, place).run().digests == whole.digests
    assert {path: path.stat().st_mtime_ns for path in laid} == laid


@pytest.mark.parametrize("kind", ["dataframe", "table", "texts"])
def test_history_that_spark_reads_is_that_of_files(spark: Any, tmp_path: Path, kind: str) -> None:
    place = Place(tmp_path, 4)
    rows = [one for one in TRADES if one["t"] < UNTIL + SECOND]
    rows.sort(key=lambda row: [row[name] for name in ("t", "symbol", "price", "size")])
    rows.append({**rows[0], "size": 0})  # which is rejected
    for name in ("a.csv", "b.csv", "c.csv"):
        (tmp_path / "history" / name).unlink()
    place.write({"a.csv": rows})
    whole = backfill(spark, place, "other").run()
    texts = f"csv:file:{tmp_path}/history"
    frame = spark.createDataFrame(rows, "symbol string, price double, size long, t long")
    frame = frame.repartition(3)
    frame.createOrReplaceTempView("traded")
    history = {"dataframe": frame, "table": "table:traded", "texts": texts}[kind]

    def again(**options: Any) -> Any:
        return backfill(spark, place, history=history, **options)

    first = again()
    first._parts(frozenset({0, 2}), keeps=True, show=None)
    laid = {path: path.stat().st_mtime_ns for path in (tmp_path / "store").glob("**/*.arrow")}
    receipt = again().run()
    for name in ("rows", "digests", "refused"):
        assert getattr(receipt, name) == getattr(whole, name), name
    assert receipt.files[0]["beyond"] == whole.files[0]["beyond"] > 0
    assert {path: path.stat().st_mtime_ns for path in laid} == laid, "it is resumed"
    assert list(receipt.refused.values()) == [1]
    (read,) = receipt.files
    assert read["place"] == ("a DataFrame" if kind == "dataframe" else history)
    assert f"read       {read['place']}: " in receipt.text()
    assert again().check(Receipt.of(json.dumps(receipt.as_dict()), "receipt")) == []


def test_what_does_not_fit_is_refused_and_nothing_adopted(spark: Any, tmp_path: Path) -> None:
    from ripple.spark import BackfillError

    place = Place(tmp_path, 2)
    (tmp_path / "history" / "b.csv").unlink()
    (tmp_path / "history" / "a.csv").unlink()
    with pytest.raises(BackfillError, match=r"records of the log are missing in history"):
        backfill(spark, place).run()
    assert not list((tmp_path / "store").glob("**/origin.json"))
    place.digest("minutes", place.live, "store")
    with pytest.raises(BackfillError, match=r"has begun in .* from nothing: nothing was adopted"):
        backfill(spark, place).run()


def test_cluster_continues_from_history(spark: Any, tmp_path: Path) -> None:
    place = Place(tmp_path, 4)
    receipt = backfill(spark, place, "st/store").run()
    (tmp_path / "receipt.json").write_text(json.dumps(receipt.as_dict()))
    ended = run(
        RIPPLE, "cluster", "up", f"{place.file}:minutes", "--source", place.live,
        "--sink", f"log:{tmp_path}/cluster/out", "--workers", "2", "--dir", tmp_path / "st",
        "--until-end", "--free-ports",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    expected = run(
        RIPPLE, "cluster", "up", f"{place.file}:minutes", "--source", place.whole,
        "--sink", f"log:{tmp_path}/whole/out", "--workers", "2", "--dir", tmp_path / "whole-st",
        "--until-end", "--free-ports",
    )  # fmt: skip
    assert expected.code == 0, expected.err
    found, whole = (
        set(run(RIPPLE, "log", "table", f"log:{tmp_path}/{one}/out").rows)
        for one in ("cluster", "whole")
    )
    assert found <= whole
    live = {
        row for row in whole if row.startswith("{") and json.loads(row)["window_end_ns"] > UNTIL
    }
    assert live
    assert live <= found, "windows that were open when history ended have all of it"


@pytest.mark.parametrize(("name", "counts", "back_s"), [("near", (2, 2), 7), ("once", (2,), 60)])
def test_cluster_continues_with_the_rows_that_wait(
    spark: Any, tmp_path: Path, name: str, counts: tuple[int, ...], back_s: int
) -> None:
    from ripple.spark import Backfill

    place = Graph(tmp_path, name, counts)

    def of(store: str) -> Any:
        return Backfill(
            spark,
            place.file,
            place.history,
            until_ns=UNTIL,
            live=place.live,
            store=f"{tmp_path}/{store}",
        )

    again = of("st/store")
    again._parts(frozenset({0}), keeps=True, show=None)  # and then it was interrupted
    receipt = again.run()
    assert receipt.digests == of("other").run().digests
    for folder, places in (("st", place.live), ("whole", place.whole)):
        sources = [f"{source}={at}" for source, at in places.items()]
        sinks = [f"{output}=log:{tmp_path}/out-{folder}/{output}" for output in OUTPUTS]
        ended = run(
            RIPPLE, "cluster", "up", place.file, "--workers", "2", "--dir", tmp_path / folder,
            "--until-end", "--free-ports", *(word for one in sources for word in ("--source", one)),
            *(word for one in sinks for word in ("--sink", one)),
        )  # fmt: skip
        assert ended.code == 0, ended.err
    marks_ns = [at for part in receipt.partitions for at in part["watermarks_ns"].values()]
    assert len(set(marks_ns)) == 1, "so that the same rows wait in all partitions"
    rows = place.following(place.shown("whole"), marks_ns[0] - back_s * SECOND)
    assert sorted(place.shown("st"), key=repr) == rows
    found, expected = (
        sorted(run(RIPPLE, "log", "table", f"log:{tmp_path}/out-{one}/rows-out").rows)
        for one in ("st", "whole")
    )
    assert found == expected


def test_history_of_several_sources_is_adopted_and_checked(spark: Any, tmp_path: Path) -> None:
    from ripple.spark import Backfill
    from ripple.spark.backfill.receipt import Receipt

    place = Graph(tmp_path, "united", (2, 2))
    one = Backfill(
        spark,
        place.file,
        place.history,
        until_ns=UNTIL,
        live=place.live,
        store=f"{tmp_path}/store",
        partitions=1,
    )
    receipt = one.run()
    assert not receipt.broken()
    assert Receipt.of(json.dumps(receipt.as_dict()), "r.json") == receipt
    assert receipt.live == place.live
    assert not one.check(receipt)
    expected, found = place.run(place.whole, "whole-store"), place.run(place.live, "store")
    assert found.digests["rows-out"] == expected.digests["rows-out"]
    assert found.digests["bars-out"] == expected.digests["bars-out"]
