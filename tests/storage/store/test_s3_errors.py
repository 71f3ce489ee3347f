"""What S3 answers, and what keeps a request from an answer: each in words that say what to do."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from botocore import exceptions as boto

from ripple.core.setting import SettingsError
from ripple.storage.store import RetryingStore, StoreRefusedError, UnsafeStoreError
from ripple.storage.store.memory import MemoryStore
from ripple.storage.store.opening import open_store
from ripple.storage.store.probe import probe
from ripple.storage.store.s3 import S3Store
from ripple.storage.store.s3_errors import store_error
from ripple.storage.store.s3_settings import S3Settings, is_s3, split_url
from ripple.testing import Chance
from ripple.world import LiveClock, LiveRandom
from ripple.world.errors import UnreadableError

UNBELIEVED = ssl.SSLCertVerificationError("certificate verify failed")
HERE = [
    (boto.ConfigParseError(path="/etc/aws"), "/etc/aws"),
    (boto.ProfileNotFound(profile="prod"), "no profile 'prod': check AWS_PROFILE"),
    (boto.NoCredentialsError(), "no credentials"),
    (boto.NoRegionError(), "set s3_region, or AWS_REGION"),
    (boto.InvalidRegionError(region_name="x y"), "x y"),
    (boto.EndpointResolutionError(msg="no such partition"), "no such partition"),
    (boto.ParamValidationError(report="Invalid bucket name"), "Invalid bucket name"),
    (boto.HTTPClientError(error=ValueError("Newline in a header")), "Newline in a header"),
    (boto.SSLError(endpoint_url="https://x", error=UNBELIEVED), "AWS_CA_BUNDLE"),
    (ValueError("Invalid endpoint: http://x y"), "Invalid endpoint"),
    (RecursionError(), "check s3_region"),
]
ON_THE_WAY = [
    boto.EndpointConnectionError(endpoint_url="http://x"),
    boto.ReadTimeoutError(endpoint_url="http://x"),
    boto.ConnectionClosedError(endpoint_url="http://x"),
    boto.SSLError(endpoint_url="https://x", error=ssl.SSLEOFError("cut")),
    boto.HTTPClientError(error=RuntimeError("a session is closed")),
    ConnectionResetError(),
]


@pytest.mark.parametrize(("error", "says"), HERE, ids=lambda one: type(one).__name__)
def test_local_fault_is_reported_and_not_retried(error: Exception, says: str) -> None:
    told = store_error(error, "put", "b", "p/x")
    assert isinstance(told, StoreRefusedError), told
    assert says in str(told)
    assert str(told).startswith("put s3://b/p/x: ")


@pytest.mark.parametrize("error", ON_THE_WAY, ids=lambda one: type(one).__name__)
def test_network_error_is_retried(error: Exception) -> None:
    told = store_error(error, "get", "b", "p/x")
    assert not isinstance(told, StoreRefusedError)
    assert str(told).startswith(f"get s3://b/p/x: no answer ({type(error).__name__})")
    assert ("speak TLS" in str(told)) == isinstance(error, boto.SSLError)


@pytest.mark.parametrize(
    ("code", "status"), [("InvalidObjectState", 403), ("KMS.DisabledException", 400)]
)
def test_unreadable_object_is_distinguished_from_a_refusing_store(code: str, status: int) -> None:
    about = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    told = store_error(boto.ClientError(about, "GetObject"), "get", "b", "p/x")
    assert isinstance(told, UnreadableError)
    assert str(told).startswith(f"get s3://b/p/x: refused, {status} {code}: restore the object")


class _Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked += 1
        status, code = self.server.answer
        body = f"<Error><Code>{code}</Code></Error>".encode() if code else b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_DELETE = do_PUT  # noqa: N815 - by the method's name

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    def __init__(self, status: int, code: str) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.answer, self.asked = (status, code), 0


@contextmanager
def answering(status: int, code: str) -> Iterator[_Server]:
    with _Server(status, code) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize(
    ("status", "code", "says"),
    [
        (403, "RequestTimeTooSkewed", "check this machine's clock"),
        (403, "AccessDenied", "allow s3:PutObject"),
        (501, "NotImplemented", "refused, 501 NotImplemented: .* must know If-None-Match"),
        (501, "", "refused, 501: .* must know If-None-Match"),
        (301, "PermanentRedirect", "check s3_region and s3_endpoint"),
        (307, "TemporaryRedirect", "check s3_region and s3_endpoint"),
    ],
)
async def test_refused_request_is_sent_once_and_reported(
    status: int, code: str, says: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in (("AWS_ACCESS_KEY_ID", "x"), ("AWS_SECRET_ACCESS_KEY", "hush")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))

    with answering(status, code) as server:
        settings = S3Settings(f"http://127.0.0.1:{server.server_port}", "us-east-1")
        store = S3Store("bucket", "p", LiveRandom(), settings)
        with pytest.raises(StoreRefusedError, match=says):
            await RetryingStore(store, LiveClock(), Chance()).put_if_absent("a.bin", b"x")
        await store.close()
        assert server.asked <= 2  # a put, and perhaps a look whose object is there


@pytest.mark.parametrize("place", ["s3:/bucket/p", "s3:bucket", "S3://bucket/p", "s3:///p"])
async def test_a_place_that_is_meant_to_be_in_s3_makes_no_folder(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert is_s3(place)
    with pytest.raises(SettingsError, match="is not s3://bucket"):
        async with open_store(place):
            pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["s3://me:hush@bucket/p", "s3:/me:hush@bucket/p"])
def test_a_secret_in_a_place_is_refused_and_not_shown(place: str) -> None:
    with pytest.raises(SettingsError, match=r"holds a user: .* AWS_ACCESS_KEY_ID") as refused:
        split_url(place)
    assert "hush" not in str(refused.value)
    assert split_url("s3://bucket/a@b") == ("bucket", "a@b")


def test_an_encryption_that_there_is_not_is_refused_before_anything_is_stored() -> None:
    with pytest.raises(SettingsError, match="'rot13', none of AES256, aws:kms"):
        S3Settings(encryption="rot13")


class _Late(MemoryStore):
    async def get(self, name: str, *, length_max: int) -> bytes | None:
        return None


async def test_store_with_late_reads_is_distinguished_from_one_that_replaces() -> None:
    with pytest.raises(UnsafeStoreError, match="does not list an object right after its put"):
        await probe(_Late(), Chance(), "s3://b/p")
