"""S3, as real servers speak it: what every store promises, and what S3 and a network do to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from ripple.core.errors import LimitError
from ripple.storage.store import RetryingStore, StoreRefusedError
from ripple.storage.store.s3 import S3Store
from ripple.storage.store.s3_settings import S3Settings
from ripple.testing import Chance
from ripple.world import LiveClock, LiveRandom, ObjectStore, StoreError
from ripple.world.errors import UnreadableError
from tests.services.missing import MissingError, skip
from tests.services.proxy import Proxy, a
from tests.services.s3 import Moto, ObjectServer, S3Proxy
from tests.world.store_contract import StoreContract

pytestmark = pytest.mark.services

MIB = 1 << 20
PART_BYTES = 5 * MIB  # the least that S3 takes


@pytest.fixture(scope="module", params=[S3Proxy, Moto], ids=["s3proxy", "moto"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ObjectServer]:
    try:
        server = request.param(tmp_path_factory.mktemp("s3") / "server")
    except MissingError as error:
        skip(error)
    with server:
        yield server


@pytest.fixture
def bucket(
    server: ObjectServer, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Return a bucket of the test's own, for whom the environment has the credentials."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    name = f"b{id(request)}"
    server.make_bucket(name)
    return name


class TestS3(StoreContract):
    @pytest.fixture(params=["", "deep/below"])
    async def store(
        self, server: ObjectServer, bucket: str, request: pytest.FixtureRequest
    ) -> AsyncIterator[S3Store]:
        # All of them where it takes half a minute.
        self.race_names = 100 if isinstance(server, S3Proxy) and not request.param else 10
        settings = S3Settings(endpoint=server.endpoint)
        store = S3Store(bucket, request.param, LiveRandom(), settings)
        yield store
        await store.close()

    async def test_more_than_a_page_is_listed(self, store: ObjectStore) -> None:
        names = [f"many/{number:05d}.bin" for number in range(1005)]
        async with asyncio.TaskGroup() as tasks:
            for name in names:
                tasks.create_task(store.put_if_absent(name, b""))
        assert await store.list("many/") == names


@pytest.fixture
async def proxy(server: ObjectServer) -> AsyncIterator[Proxy]:
    """Yield a proxy in front of the server, which the fixture ``store`` goes through."""
    async with Proxy(f"127.0.0.1:{server.port}") as proxy:
        yield proxy


@pytest.fixture
async def store(proxy: Proxy, bucket: str) -> AsyncIterator[S3Store]:
    settings = S3Settings(endpoint=f"http://{proxy.address}")
    store = S3Store(bucket, "p", LiveRandom(), settings, part_bytes=PART_BYTES)
    yield store
    await store.close()


async def test_put_whose_reply_is_lost_knows_that_it_won(store: S3Store, proxy: Proxy) -> None:
    for count in (1, 2):  # the HTTP client repeats it, or nobody does
        name = f"lost/{count}.bin"
        proxy.lose_replies(count, a(b"PUT"))
        assert await store.put_if_absent(name, b"ours")
        assert await store.get(name, length_max=9) == b"ours"
    assert proxy.lost == 3


async def test_put_that_loses_and_whose_reply_is_lost_knows_that_it_lost(
    store: S3Store, proxy: Proxy
) -> None:
    await store.put_if_absent("a.bin", b"theirs")
    proxy.lose_replies(2, a(b"PUT"))
    assert not await store.put_if_absent("a.bin", b"ours")
    assert proxy.lost == 2


async def test_put_has_an_unknown_outcome_without_an_answer(store: S3Store, proxy: Proxy) -> None:
    await store.list("")  # the client is open
    proxy.lose_replies(2, a(b"PUT"))
    proxy.answer(503, "SlowDown", 1, a(b"HEAD"))
    with pytest.raises(StoreError, match="put, then get") as caught:
        await store.put_if_absent("a.bin", b"ours")
    assert caught.value.done is None


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (409, "ConditionalRequestConflict"),
        (503, "SlowDown"),
        (500, "InternalError"),
        (429, "TooManyRequests"),
    ],
)
async def test_transient_rejection_is_retried(
    store: S3Store, proxy: Proxy, status: int, code: str
) -> None:
    for method in (b"PUT", b"GET", b"DELETE"):
        proxy.answer(status, code, 2, a(method))
    with pytest.raises(StoreError, match=f"{status} {code}"):
        await store.put_if_absent("a.bin", b"ours")
    repeating = RetryingStore(store, LiveClock(), Chance())
    assert await repeating.put_if_absent("a.bin", b"ours")
    assert await repeating.get("a.bin", length_max=4) == b"ours"
    await repeating.delete("a.bin")
    assert await repeating.list("") == []
    assert proxy.forged == 6


async def test_a_store_that_is_cut_off_is_an_error_and_found_again(
    store: S3Store, proxy: Proxy
) -> None:
    await store.put_if_absent("a.bin", b"one")
    proxy.cut()
    for call in (
        store.put_if_absent("b.bin", b""),
        store.get("a.bin", length_max=3),
        store.list(""),
        store.delete("a.bin"),
    ):
        with pytest.raises(StoreError, match="no answer"):
            await call
    proxy.heal()
    assert await store.list("") == ["a.bin"]


async def test_forbidden_object_is_distinguished_from_a_forbidden_store(
    store: S3Store, proxy: Proxy
) -> None:
    for name in ("state/1.bin", "state/2.bin"):
        await store.put_if_absent(name, b"data")
    proxy.answer(403, "AccessDenied", 2, lambda data: b"/state/1.bin" in data)
    with pytest.raises(
        UnreadableError, match=r"1\.bin.*allow s3:GetObject.*other objects can be read"
    ):
        await store.get("state/1.bin", length_max=4)
    assert await store.get("state/2.bin", length_max=4) == b"data"
    proxy.answer(403, "AccessDenied", 2, a(b"GET"))
    with pytest.raises(StoreRefusedError, match="allow s3:GetObject"):
        await store.get("state/1.bin", length_max=4)


async def test_bytes_that_were_damaged_come_as_they_are_for_who_knows_better(
    store: S3Store, proxy: Proxy
) -> None:
    await store.put_if_absent("a.bin", b"as they were")
    proxy.garbled = [(b"as they were", b"as they weRe")] * 2  # not on the way
    assert await store.get("a.bin", length_max=20) == b"as they weRe"
    proxy.garbled.clear()
    assert await store.get("a.bin", length_max=20) == b"as they were"


@pytest.mark.parametrize("length", [0, 10_000], ids=["head", "body"])
async def test_an_answer_that_drips_is_none_however_much_is_allowed(
    server: ObjectServer, bucket: str, length: int
) -> None:
    async with Proxy(f"127.0.0.1:{server.port}") as proxy:
        settings = S3Settings(endpoint=f"http://{proxy.address}")
        store = S3Store(bucket, "drips", LiveRandom(), settings, answer_s=0.5)
        await store.put_if_absent(f"{length}.bin", bytes(length))
        proxy.drip_s = 0.1 if length == 0 else 0.0005
        with pytest.raises(StoreError, match=r"no answer \(TimeoutError\)"):
            await store.get(f"{length}.bin", length_max=1 << 40)
        proxy.drip_s = 0.0
        proxy.reset()
        await store.close()


async def test_large_objects_go_in_parts_and_the_first_wins(
    store: S3Store, proxy: Proxy, server: ObjectServer
) -> None:
    ours, theirs = b"12345" * 3 * MIB, b"6789" * 3 * MIB
    assert await store.put_if_absent("large.bin", ours)
    assert sum(b"partNumber" in request for request in proxy.requests) == 3
    assert await store.get("large.bin", length_max=len(ours)) == ours
    assert not await store.put_if_absent("large.bin", theirs)
    assert await store.get("large.bin", length_max=len(ours)) == ours
    with pytest.raises(LimitError):
        await store.get("large.bin", length_max=len(ours) - 1)


async def test_parts_and_the_end_of_an_upload_survive_lost_replies(
    store: S3Store, proxy: Proxy
) -> None:
    ours = b"12345" * 3 * MIB
    proxy.answer(503, "SlowDown", 1, lambda data: b"partNumber=2" in data)
    proxy.lose_replies(1, lambda data: data.startswith(b"POST") and b"uploadId" in data)
    assert await store.put_if_absent("large.bin", ours)
    assert (proxy.forged, proxy.lost) == (1, 1)
    assert await store.get("large.bin", length_max=len(ours)) == ours


async def test_permanent_rejection_is_not_retried_and_names_the_remedy(
    store: S3Store, proxy: Proxy, server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = S3Store("nobucket", "p", LiveRandom(), S3Settings(endpoint=server.endpoint))
    repeating = RetryingStore(nowhere, LiveClock(), Chance())
    for call in (repeating.put_if_absent("a.bin", b""), repeating.list("")):
        with pytest.raises(StoreRefusedError, match=r"s3://nobucket/p/.* make the bucket") as no:
            await call
        assert no.value.done is False
    await nowhere.close()
    proxy.answer(403, "AccessDenied", 1, a(b"PUT"))
    with pytest.raises(StoreRefusedError, match=r"p/a.bin.*AccessDenied.*s3:PutObject"):
        await store.put_if_absent("a.bin", b"")
    proxy.answer(403, "AccessDenied", 2, a(b"GET"))
    with pytest.raises(StoreRefusedError, match=r"p/a.bin.*AccessDenied.*s3:GetObject"):
        await store.get("a.bin", length_max=1)


async def test_no_credentials_are_named(server: ObjectServer, monkeypatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))

    store = S3Store("b", "", LiveRandom(), S3Settings("http://127.0.0.1:1", "us-east-1"))
    with pytest.raises(StoreRefusedError, match=r"no credentials.*AWS_ACCESS_KEY_ID"):
        await store.list("")
    await store.close()


async def test_wrong_credentials_are_refused_without_showing_them(
    server: ObjectServer, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isinstance(server, Moto):
        pytest.skip("moto checks no signature")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "guessed-secret")

    store = S3Store(bucket, "", LiveRandom(), S3Settings(endpoint=server.endpoint))
    with pytest.raises(StoreRefusedError, match="check the credentials") as caught:
        await store.list("")
    assert "guessed-secret" not in str(caught.value)
    await store.close()


async def test_encryption_is_asked_for(server: ObjectServer, bucket: str) -> None:
    if isinstance(server, S3Proxy):
        pytest.skip("s3proxy encrypts nothing")

    settings = S3Settings(endpoint=server.endpoint, encryption="aws:kms", kms_key="ours")
    store = S3Store(bucket, "", LiveRandom(), settings, part_bytes=PART_BYTES)
    for name, data in (("small.bin", b"1"), ("large.bin", b"1" * 6 * MIB)):
        assert await store.put_if_absent(name, data)
        client = await store._ready()
        found = await client.head_object(Bucket=bucket, Key=name)
        assert found["ServerSideEncryption"] == "aws:kms"
        assert found["SSEKMSKeyId"].endswith("ours")
    await store.close()
