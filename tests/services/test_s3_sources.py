"""Files in a bucket as the source of a run."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import os
import signal
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from aiobotocore.session import get_session

import ripple as rp
from ripple.connectors.files.remote import ranged
from ripple.connectors.files.remote.ranged import RangedFile
from ripple.core.errors import InputError
from tests.cli.processes import RIPPLE
from tests.patience import until
from tests.services.s3 import ObjectServer

pytestmark = pytest.mark.services

BLOCK = 1000


@rp.record
class Seen:
    who: str
    n: int
    day: int = 0


SEEN = rp.Pipeline("seen").source("seen", Seen).sink("rows")


def put(server: ObjectServer, **objects: bytes) -> None:
    async def store() -> None:
        async with get_session().create_client("s3", endpoint_url=server.endpoint) as client:
            for key, data in objects.items():
                await client.put_object(Bucket="bucket", Key=key, Body=data)

    asyncio.run(store())


def numbers(source: str) -> list[int]:
    return [row["n"] for row in rp.collect(SEEN, source).rows()]


def lines(*numbers: int) -> bytes:
    return b"".join(b"k,%d\n" % n for n in numbers)


def test_objects_folders_and_patterns_are_read_in_the_order_of_their_names(
    s3_server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranged, "BLOCK_BYTES", BLOCK)
    parquet = io.BytesIO()
    many = list(range(1000))
    pq.write_table(pa.table({"who": ["k"] * 1000, "n": many, "day": many}), parquet)
    objects = {
        "d/day=2/b.csv": lines(3, 4),
        "d/day=1/a.csv.gz": gzip.compress(lines(*range(1000))),
        "d/_SUCCESS": b"",
        "d/.hidden.csv": lines(9),
        "e/a.parquet": parquet.getvalue(),
        "e/b.csv": lines(7),
    }
    put(s3_server, **objects)
    for source in ("s3://bucket/d", "s3://bucket/d/", "s3://bucket/d/**", "s3://bucket/d/*/*.cs*"):
        assert numbers(source) == [*many, 3, 4], source
    assert {row["day"] for row in rp.collect(SEEN, "s3://bucket/d").rows()} == {1, 2}
    assert numbers("s3://bucket/e/a.parquet") == many
    put(
        s3_server,
        **{"day=1/a[1].csv": lines(1), "day=1/a1.csv": lines(2), "day=1/b*.csv": lines(3)},
    )
    assert [
        numbers(f"s3://bucket/day=1/{one}") for one in ("a[1].csv", "a[1-2].csv", "b*.csv")
    ] == [
        [1],
        [2],
        [3],
    ]
    with pytest.raises(InputError, match=r"is read as parquet, and s3://bucket/e/b\.csv as csv"):
        numbers("s3://bucket/e")
    with pytest.raises(InputError, match=r"there are no files at s3://bucket/none\.csv"):
        numbers("s3://bucket/none.csv")
    with pytest.raises(InputError, match="NoSuchBucket: make the bucket other"):
        numbers("s3://other/a.csv")


def test_an_object_that_changes_while_it_is_read_is_an_error(
    s3_server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranged, "BLOCK_BYTES", BLOCK)
    put(s3_server, **{"a.csv": lines(*range(1000))})
    file = RangedFile("s3://bucket/a.csv")
    assert file.read(4) == b"k,0\n"
    put(s3_server, **{"a.csv": lines(*range(1, 1001))})
    with pytest.raises(InputError, match=r"s3://bucket/a\.csv has changed since it was first read"):
        file.readall()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(InputError, match="check the credentials") as raised:
        numbers("s3://bucket/d")
    assert "wrong" not in str(raised.value)


PIPELINE = """
import ripple as rp

@rp.record(version=1)
class Seen:
    who: str
    n: int

pipeline = rp.Pipeline("seen").source("seen", Seen).sink("rows")
"""


@pytest.mark.parametrize("follow", [True, False])
def test_a_run_that_is_killed_again_and_again_reads_each_object_once(
    tmp_path: Path, s3_server: ObjectServer, follow: bool
) -> None:
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    out = tmp_path / "out.jsonl"
    command = [*RIPPLE, "run", "pipeline.py", "--source", "s3://bucket/d", "--sink", "out.jsonl"]
    command += ["--checkpoint-dir", "state", "--batch", "100", "--commit-interval", "1ms"]
    expected: list[int] = []
    # The names go down, so that the order of names is not that in which they come.
    for number in range(4):
        begun = len(expected)
        expected += range(begun, begun + 3000)
        put(s3_server, **{f"d/{9 - number}.csv": lines(*expected[begun:])})
        more = ["--follow"] if follow else []
        with subprocess.Popen([*command, *more], cwd=tmp_path) as process:
            until(lambda at=begun: out.exists() and out.read_bytes().count(b"\n") > at)  # type: ignore[misc]
            os.kill(process.pid, signal.SIGKILL)
    subprocess.run(command, cwd=tmp_path, check=True)
    assert [json.loads(line)["n"] for line in out.read_text().splitlines()] == expected
