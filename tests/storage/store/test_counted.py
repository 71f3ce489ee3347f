"""Requests to a store, counted by kind, and shown with a worker's samples."""

from __future__ import annotations

from ripple.control.telemetry.exposition import exposition
from ripple.control.telemetry.measures import Measures
from ripple.control.telemetry.metrics import OF_WORKERS
from ripple.storage.store import CountedStore, MemoryStore
from tests.storage.log.trades import ManualClock


async def test_each_request_counts_whether_it_finds_something_or_not() -> None:
    store = CountedStore(MemoryStore())
    assert await store.put_if_absent("a", b"12345")
    assert not await store.put_if_absent("a", b"678")
    assert await store.get("a", length_max=10) == b"12345"
    assert await store.get("b", length_max=10) is None
    assert await store.list("") == ["a"]
    await store.delete("a")
    assert store.requests == {"put": 2, "get": 2, "list": 1, "delete": 1}
    assert store.length_bytes == {"put": 8, "get": 5}
    page = exposition(OF_WORKERS, Measures("w0", ManualClock(), store=store).samples(()))
    assert 'ripple_store_requests_total{kind="put",worker="w0"} 2.0' in page
    assert 'ripple_store_bytes_total{kind="get",worker="w0"} 5.0' in page


async def test_a_long_list_is_a_request_for_each_page() -> None:
    store = CountedStore(MemoryStore())
    for number in range(2100):
        await store.put_if_absent(f"{number:04}", b"")
    await store.list("")
    assert store.requests["list"] == 3
