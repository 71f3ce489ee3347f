"""Outputs in a bucket: whole objects of one-shot runs, folders of durable ones."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from botocore.session import get_session

import ripple as rp
from ripple.connectors.connector import Writing
from ripple.connectors.files.parquet import objects
from ripple.connectors.files.parquet.objects import ObjectsSink
from ripple.connectors.files.parquet.opening import continue_parts, look_at_parts, reached_parts
from ripple.connectors.files.remote import s3_writing
from ripple.connectors.files.remote.s3_writing import ObjectTarget
from ripple.connectors.registry import own
from ripple.core.errors import OutputError
from ripple.testing import sink_suite
from tests.cli.processes import ripple
from tests.connectors.sinks.kit import CUTS, OWNER, changes, number_after, reached
from tests.services.s3 import ObjectServer

pytestmark = pytest.mark.services

FOLDER = "s3://bucket/out.parquet"
COLUMNS = ("op", "symbol", "total")


@rp.record
class Seen:
    who: str
    n: int


BY_WHO = rp.Pipeline("sums").source("seen", Seen).partition("by-who", key="who")
SUMS = BY_WHO.fold("sum", n=rp.sum("n")).sink("sums")
ROWS = [{"who": "a", "n": 1}, {"who": "b", "n": 2}, {"who": "a", "n": 3}]


@pytest.fixture
def client(s3_server: ObjectServer) -> Any:
    return get_session().create_client("s3", endpoint_url=s3_server.endpoint)


def keys(client: Any) -> list[str]:
    return [one["Key"] for one in client.list_objects_v2(Bucket="bucket").get("Contents", ())]


def test_a_one_shot_run_writes_an_object_whole_or_not_at_all(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def body(key: str) -> Any:
        return client.get_object(Bucket="bucket", Key=key)["Body"].read()

    rp.run(SUMS, source=ROWS, sink="s3://bucket/d/sums.parquet")
    found = pq.read_table(io.BytesIO(body("d/sums.parquet"))).to_pylist()
    assert [(row["who"], row["n"]) for row in found] == [("a", 4), ("b", 2)]
    rp.run(SUMS, source=ROWS, sink="csv:s3://bucket/sums.csv?header")
    rp.run(SUMS, source=ROWS, sink="jsonl:s3://bucket/sums")
    assert body("sums.csv") == b"who,n\na,4\nb,2\n"
    assert body("sums").startswith(b'{"op":"set"')
    bad = [*ROWS, {"who": 1}]
    with pytest.raises(rp.RippleError):
        rp.run(SUMS, source=bad, sink="s3://bucket/sums.csv", max_rejected=0)
    assert body("sums.csv") == b"who,n\na,4\nb,2\n"
    monkeypatch.setattr(s3_writing, "PART_BYTES", 5 << 20)
    target = ObjectTarget("s3://bucket/large.csv")
    block = b"0123456789abcde\n" * 65536
    for _ in range(11):
        target.write(block)
    assert "large.csv" not in keys(client)
    target.commit()
    target.close()
    assert body("large.csv") == block * 11
    given_up = ObjectTarget("s3://bucket/never.csv")
    for _ in range(6):
        given_up.write(block)
    given_up.close()
    assert "never.csv" not in keys(client)
    assert not client.list_multipart_uploads(Bucket="bucket").get("Uploads")
    for place, told in {
        "parquet:s3://bucket/d/": "it is a folder, and a one-shot run writes one object",
        "s3://bucket/d": "its name must end as that of a file does",
        "s3://missing/d.csv": "make the bucket missing, or name another",
        "s3://me:secret@bucket/d.csv": "an output at s3://...@... holds a user",
    }.items():
        with pytest.raises(OutputError, match=told) as refused:
            rp.run(SUMS, source=ROWS, sink=place)
        assert "secret" not in str(refused.value)
    with pytest.raises(OutputError, match="the run's own source"):
        rp.run(SUMS, source="s3://bucket/d/", sink="s3://bucket/d/out.csv")
    with pytest.raises(OutputError, match="own source"):
        rp.run(SUMS, source="s3://bucket/*.csv", sink="csv:s3://bucket/other.csv")
    with pytest.raises(OutputError, match="read alone"):
        rp.run(SUMS, source=ROWS, sink="csv:https://host/out.csv")
    both = SUMS.also(BY_WHO.fold("number", n=rp.count()).sink("numbers"))
    with pytest.raises(OutputError, match="cannot write two things"):
        rp.run(both, source=ROWS, sink=dict.fromkeys(("sums", "numbers"), "s3://bucket/d.csv"))


@pytest.mark.parametrize("full", [1, 4, 1 << 17])
def test_a_folder_has_each_cut_once_over_restarts(
    client: Any, full: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "PART_ROWS", full)
    rows = []
    for number in range(CUTS):
        sink = ObjectsSink(FOLDER, OWNER, COLUMNS)
        assert number_after(sink.committed) == number
        sink.write(changes(number), reached(number))
        sink.close()  # it is not committed
        sink = ObjectsSink(FOLDER, OWNER, COLUMNS)
        sink.write(changes(number), reached(number))
        sink.commit(reached(number))
        sink.commit(reached(number))  # without rows
        rows += changes(number).to_pylist()
    assert read(client) == [(row["symbol"], row["total"]) for row in rows]
    shown = [key for batch in sink.shown_keys(["symbol"]) for key in batch["symbol"].to_pylist()]
    assert shown == [row["symbol"] for row in rows]


def place(folder: Path) -> str:
    return f"s3://bucket/{folder.name}.parquet"


def rows_at(path: str) -> list[dict[str, Any]]:
    """What a reader of the objects finds."""
    client = get_session().create_client("s3", endpoint_url=os.environ["RIPPLE_S3_ENDPOINT"])
    prefix = path.removeprefix("s3://bucket/")
    found: list[dict[str, Any]] = []
    listed = client.list_objects_v2(Bucket="bucket", Prefix=prefix).get("Contents", ())
    for key in sorted(one["Key"] for one in listed):
        data = client.get_object(Bucket="bucket", Key=key)["Body"].read()
        found += pq.read_table(pa.BufferReader(data)).to_pylist()
    return found


@pytest.mark.usefixtures("s3_server")
class TestContinued(sink_suite(own()["parquet"], place, rows_at)):  # type: ignore[misc]
    """Written by a durable run, also one that is killed after any call."""


@pytest.mark.usefixtures("s3_server")
class TestWhole(sink_suite(own()["parquet"], place, rows_at, plain=True)):  # type: ignore[misc]
    """Written by a one-shot run."""


def read(client: Any) -> list[tuple[str, int]]:
    found = []
    for key in sorted(keys(client)):
        data = client.get_object(Bucket="bucket", Key=key)["Body"].read()
        found += pq.read_table(pa.BufferReader(data)).to_pylist()
    return [(row["symbol"], row["total"]) for row in found]


@pytest.mark.parametrize("full", [1, 1 << 17])
def test_of_two_writers_one_fails(client: Any, full: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "PART_ROWS", full)
    first = ObjectsSink(FOLDER, OWNER, COLUMNS)
    first.write(changes(0), reached(0))
    first.commit(reached(0))
    second = ObjectsSink(FOLDER, OWNER, COLUMNS)
    for sink in (second, first):
        sink.write(changes(1), reached(1))
    second.write(changes(2), reached(2))
    second.commit(reached(2))
    with pytest.raises(OutputError, match="another run has written it meanwhile"):
        first.commit(reached(1))
    rows = [row for number in range(3) for row in changes(number).to_pylist()]
    assert read(client) == [(row["symbol"], row["total"]) for row in rows]


def test_a_durable_run_resumes_and_other_folders_are_refused(client: Any, tmp_path: Path) -> None:
    source, file = tmp_path / "seen", tmp_path / "sums.py"
    source.mkdir()
    file.write_text(
        "import ripple as rp\n\n@rp.record\nclass Seen:\n    who: str\n    n: int\n\n"
        'pipeline = (rp.Pipeline("sums").source("seen", Seen).partition("by-who", key="who")'
        '.fold("sum", n=rp.sum("n")).sink("sums"))\n'
    )
    run = (
        "run", file, "--source", source, "--checkpoint-dir", tmp_path / "state",
        "--sink", "parquet:s3://bucket/lake/sums/",
    )  # fmt: skip
    (source / "1.csv").write_text("a,1\nb,2\n")
    assert ripple(*run).code == 0
    (source / "2.csv").write_text("a,3\n")
    assert ripple(*run).code == 0
    assert ripple(*run).code == 0  # nothing new
    (key,) = keys(client)
    assert key == "lake/sums/part-000000000001.parquet"
    body = client.get_object(Bucket="bucket", Key=key)["Body"].read()
    rows = pq.read_table(io.BytesIO(body)).to_pylist()
    assert [(row["op"], row["who"], row["n"]) for row in rows] == [
        ("set", "a", 1), ("set", "b", 2), ("set", "a", 4),
    ]  # fmt: skip
    for inside in (
        "s3://bucket/lake/sums",
        "s3://bucket/lake/sums/x.csv",
        "S3://bucket/lake/sums/d/x",
    ):
        with pytest.raises(
            OutputError, match="durable run writes its files into s3://bucket/lake/sums;"
        ):
            ObjectTarget(inside)
    ObjectTarget("s3://bucket/lake/sums.csv").close()
    plan = rp.Pipeline("other").source("seen", Seen).sink("rows").plan()
    asked = Writing(plan, plan.outputs[0])
    for place, told in {
        "s3://bucket/lake/sums": "belongs to output 'sums' of pipeline 'sums'",
        "s3://bucket/lake": "holds sums/part-000000000001.parquet, which is not of this output",
        "s3://missing/lake": "make the bucket missing",
    }.items():
        for opened in (continue_parts, look_at_parts, reached_parts):
            with pytest.raises(OutputError, match=told):
                opened(place, asked)
    refused = ripple(*run[:-1], "csv:s3://bucket/sums.csv")
    assert (refused.code, "an object of S3 cannot be continued" in refused.err) == (1, True)
    refused = ripple(*run[:-1], "s3://bucket/sums.csv")
    assert (refused.code, "name one that ends in .parquet" in refused.err) == (1, True)
