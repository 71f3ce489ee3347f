"""Files of web servers and of buckets, read like local files."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ripple as rp
from ripple.connectors.files.remote import attempts, contract, ranged
from ripple.connectors.files.remote.listing import matches
from ripple.connectors.files.remote.ranged import RangedFile
from ripple.core.errors import InputAwayError, InputError
from tests.connectors.web_server import WebServer, web_server

LINES = b"".join(b"k%d,%d\n" % (n % 3, n) for n in range(2000))


@rp.record
class Seen:
    who: str
    n: int


SEEN = rp.Pipeline("seen").source("seen", Seen).partition("by", key="who").fold("n", n=rp.sum("n"))
SEEN = SEEN.sink("out")
EXPECTED = [{"who": f"k{k}", "n": sum(range(k, 2000, 3))} for k in range(3)]


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WebServer, Path]]:
    with web_server(tmp_path_factory.mktemp("web")) as found:
        yield found


@pytest.fixture
def web(
    serving: tuple[WebServer, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> WebServer:
    server, certificate = serving
    server.reset()
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(attempts, "PAUSES_S", (0.0, 0.0))
    monkeypatch.setattr(ranged, "BLOCK_BYTES", 1000)
    return server


def rows(source: str) -> list[dict[str, object]]:
    return sorted(rp.collect(SEEN, source).rows(), key=lambda row: row["who"])


def forms() -> dict[str, bytes]:
    records = pa.table({"who": [f"k{n % 3}" for n in range(2000)], "n": list(range(2000))})
    parquet = io.BytesIO()
    pq.write_table(records, parquet, row_group_size=300)
    json_lines = b"".join(b'{"who":"k%d","n":%d}\n' % (n % 3, n) for n in range(2000))
    return {
        "/a.csv": LINES,
        "/a.csv.gz": gzip.compress(LINES),
        "/a.csv.zst": pa.compress(LINES, "zstd", asbytes=True),
        "/a.jsonl": json_lines,
        "/a.parquet": parquet.getvalue(),
    }


def test_each_format_is_read_in_parts(web: WebServer) -> None:
    web.files = forms()
    for path in web.files:
        assert rows(web.url + path) == EXPECTED, path
    of_csv = [part for path, part in web.asked if path == "/a.csv"]
    assert of_csv == ["bytes=0-0", "bytes=0-999", f"bytes=1000-{len(LINES) - 1}"]
    assert rows(f"csv:{web.url}/a.csv") == EXPECTED
    web.files["/b.csv"] = LINES.replace(b",", b";")
    assert rows(f"{web.url}/b.csv?delimiter=;") == EXPECTED


def test_a_server_that_is_away_for_a_moment_is_asked_again(web: WebServer) -> None:
    web.files = {"/a.csv": LINES}
    web.failures = 2
    assert rows(f"{web.url}/a.csv") == EXPECTED
    web.failures = 100
    with pytest.raises(InputAwayError, match=r"cannot read https://.*/a\.csv: no answer"):
        rows(f"{web.url}/a.csv")
    assert web.failures == 97


def test_a_file_that_changes_while_it_is_read_is_an_error(web: WebServer) -> None:
    web.files = {"/a.csv": LINES}
    file = RangedFile(f"{web.url}/a.csv")
    assert file.read(10) == LINES[:10]
    web.etags["/a.csv"] = '"2"'
    with pytest.raises(InputError, match=r"/a\.csv has changed since it was first read: it had"):
        file.readall()


def test_credentials_come_from_netrc_and_go_to_their_host_alone(
    web: WebServer, tmp_path: Path
) -> None:
    web.files = {"/a.csv": LINES, "/b.csv": LINES}
    web.user = "Basic YW5uOnNlY3JldA=="
    with pytest.raises(InputError, match=r"answers 401: give a user and a password .*netrc"):
        rows(f"{web.url}/a.csv")
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine 127.0.0.1 login ann password secret\n")
    netrc.chmod(0o600)
    assert rows(f"{web.url}/a.csv") == EXPECTED
    web.redirects["/old.csv"] = web.url.replace("127.0.0.1", "localhost") + "/b.csv"
    with pytest.raises(InputError, match=r"CERTIFICATE_VERIFY_FAILED|certificate"):
        rows(f"{web.url}/old.csv")
    web.redirects["/old.csv"] = "http://127.0.0.1/b.csv"
    with pytest.raises(InputError, match="redirects to one without TLS"):
        rows(f"{web.url}/old.csv")
    web.redirects["/old.csv"] = "/b.csv"
    assert rows(f"{web.url}/old.csv") == EXPECTED


def test_a_server_without_parts_serves_small_files_alone(
    web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    web.files, web.parts = {"/a.csv": LINES, "/empty.csv": b""}, False
    assert rows(f"{web.url}/a.csv") == EXPECTED
    assert rows(f"{web.url}/empty.csv") == []
    monkeypatch.setattr("ripple.connectors.files.remote.web.BLOCK_BYTES", 1000)
    with pytest.raises(InputError, match="gives no parts of files"):
        rows(f"{web.url}/a.csv")


def test_a_server_may_give_less_than_it_is_asked_for(web: WebServer) -> None:
    web.files, web.part_bytes = {"/a.csv": LINES}, len(LINES) // 3
    assert rows(f"{web.url}/a.csv") == EXPECTED


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"Content-Range": "bytes 7-8/9"}, "gives bytes 7 to 8 of 9 where it is asked for 0 to 0"),
        ({"Content-Range": "bytes 0-8/4"}, "gives bytes 0 to 8 of 4"),
        ({"Content-Range": "bytes 0-0/*"}, "does not say how long it is"),
        ({"Content-Encoding": "gzip"}, r"gives parts of it compressed \(gzip\)"),
    ],
)
def test_a_server_that_gives_other_bytes_is_named(
    web: WebServer, headers: dict[str, str], why: str
) -> None:
    web.files, web.untrue = {"/a.csv": LINES}, headers
    with pytest.raises(InputError, match=why):
        rows(f"{web.url}/a.csv")


def test_a_compressed_file_is_not_decompressed_on_its_way(web: WebServer) -> None:
    web.files, web.untrue = {"/a.csv.gz": gzip.compress(LINES)}, {"Content-Encoding": "x-gzip"}
    assert rows(f"{web.url}/a.csv.gz") == EXPECTED


def test_addresses_that_are_none_are_named(web: WebServer) -> None:
    web.redirects["/nowhere.csv"] = "https://[::x/a.csv"
    for source in (
        f"{web.url}/nowhere.csv",
        "https://[::x/a.csv",
        "https://h:p/a.csv",
        "s3://[b/a.csv",
    ):
        with pytest.raises(InputError, match=r"redirects to nowhere|is not (https|s3)://"):
            rows(source)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("/none.csv", "the server answers 404: check the name"),
        ("/a.csv?sig=s3cr3t", "has a query, which may be a secret"),
        ("/a.txt", "cannot tell how to read https://.*/a.txt: its name must end"),
        ("/", "is not https://HOST"),
    ],
)
def test_what_cannot_be_read_is_named(web: WebServer, source: str, why: str) -> None:
    web.files = {"/a.csv": LINES, "/a.txt": LINES}
    with pytest.raises(InputError, match=why) as raised:
        rows(web.url + source)
    assert "s3cr3t" not in str(raised.value)


def test_a_user_in_an_address_is_not_shown() -> None:
    for source in ("https://ann:s3cr3t@host/a.csv", "s3://ann:s3cr3t@bucket/a.csv"):
        with pytest.raises(InputError, match="holds a user") as raised:
            rows(source)
        assert "s3cr3t" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "pattern", "expected"),
    [
        ("a.csv", "*.csv", True),
        ("x/a.csv", "*.csv", False),
        ("x/a.csv", "**/*.csv", True),
        ("a.csv", "**/*.csv", True),
        ("x/y/a.csv", "**/*", True),
        ("x/_y/a.csv", "**/*", False),
        ("_SUCCESS", "**/*", False),
        ("day=1/a.csv", "day=*/a.csv", True),
    ],
)
def test_patterns_are_of_parts_of_names(name: str, pattern: str, expected: bool) -> None:
    assert matches(name.split("/"), pattern.split("/")) is expected


def test_a_changed_environment_has_a_server_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIPPLE_S3_ENDPOINT", "http://127.0.0.1:1")
    first = contract.server_of("s3://bucket/a")
    assert contract.server_of("s3://other/b") is first
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "other")
    assert contract.server_of("s3://bucket/a") is not first
