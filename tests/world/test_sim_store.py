"""The simulated store fails as planned, and outlives the process."""

from __future__ import annotations

import pytest

from ripple.testing import Fault, SimStore
from ripple.testing.sim.effects import Effects, Trace
from ripple.testing.sim.faults import Planned
from ripple.world import StoreError


@pytest.mark.parametrize(
    ("kind", "done", "stored"),
    [
        ("store_refused", False, False),
        ("store_unsent", None, False),
        ("store_lost_reply", None, True),
    ],
)
async def test_failed_put_says_what_is_known(kind: str, done: bool | None, stored: bool) -> None:
    store = SimStore(Effects(0, Planned([Fault(0, 1, kind)]), Trace()))
    with pytest.raises(StoreError) as caught:
        await store.put_if_absent("a", b"1")
    assert caught.value.done is done
    assert (await store.get("a", length_max=1) == b"1") is stored


async def test_object_outlives_the_process() -> None:
    store = SimStore()
    await store.put_if_absent("a", b"\0")
    store.flip_bit("a", 3)
    other = store.next(Effects(1, Planned(()), Trace()), 5)
    assert await other.get("a", length_max=1) == b"\x08"
