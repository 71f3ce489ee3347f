"""Deephaven's own clients show, after every update, the table as it is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ripple.client.flight.barrage.rows import Rows
from ripple.client.flight.barrage.subscription import Subscription
from ripple.core.access import access_of
from ripple.world.tls import Tls
from tests.client.flight.barrage.judging import Judge, Truth, as_seen, judge, session_of, view
from tests.client.flight.barrage.serving import OUTPUT, ROLES, TOKEN, begin, serving
from tests.client.flight.barrage.workload import LAYOUT, Seen, Workload
from tests.services import deephaven
from tests.services.certificate import certified
from tests.services.missing import MissingError, skip

pytestmark = pytest.mark.services

UPDATES = 1000
PAUSE_S = 0.012
AT_MOST = 2  # steps that a slow client is told of as one


async def shown(truths: Iterable[Truth]) -> None:
    """Wait until clients show the tables as they are now."""
    while not all(truth.is_last for truth in truths):
        await asyncio.sleep(0.002)


def ticking() -> dict[str, str]:
    try:
        return deephaven.ticking()
    except MissingError as error:
        skip(error)


def java() -> dict[str, str]:
    try:
        return deephaven.server()
    except MissingError as error:
        skip(error)


async def followed(
    seed: int,
    updates: int,
    *,
    at_once: int = 1,
    served: dict[str, Any] | None = None,
    session: dict[str, Any] | None = None,
) -> Truth:
    """Let the client in C++ follow; return how that went. Raises AssertionError.

    at_once: so many changes are one update, whoever is fast or slow.
    """
    environment = ticking()
    workload, truth = Workload(seed), Truth()
    async with serving(**(served or {})) as server:
        begin(workload, server.seen)
        truth.states.append(workload.state())

        async def change() -> None:
            for number in range(updates):
                if number % AT_MOST == 0:
                    await shown([truth])
                await asyncio.sleep(PAUSE_S)  # before: it is over once the last one is told
                for _ in range(at_once):
                    server.seen.emit(*workload.step())
                truth.states.append(workload.state())

        given = session_of(server.address, **(session or {})), OUTPUT
        async with judge("ticking_judge.py", environment, *given) as client:
            assert await client.says() == f"tables {OUTPUT}"
            changing = asyncio.create_task(change())
            try:
                while not (changing.done() and truth.is_last):
                    truth.see(await client.says())
            finally:
                changing.cancel()
            assert not await client.says(0.5), "it was told of what did not happen"
    return truth


@pytest.mark.parametrize(("seed", "updates", "at_once"), [(1, UPDATES, 1), (2, UPDATES // 2, 3)])
async def test_the_client_in_cpp_shows_the_table_after_every_update(
    seed: int, updates: int, at_once: int
) -> None:
    truth = await followed(seed, updates, at_once=at_once)
    assert truth.seen > updates / AT_MOST


def _as_old(rows: Rows, numbers: Any, stamp: int) -> Any:
    """A row's number may be another's by now: this mutant does not look.

    It is found by an update of several changes, in which one row goes and the next gets its number.
    """
    return rows._born[numbers] >= 0


def _rotated(self: Subscription, *given: Any) -> Any:
    """The mutant says of a column what has changed in the one before."""
    update = UPDATE(self, *given)
    told = update.metadata
    if told.modified:
        update.metadata = told._replace(modified=[told.modified[-1], *told.modified[:-1]])
    return update


UPDATE = Subscription._update


@pytest.mark.parametrize(
    ("part", "name", "mutant"), [(Rows, "older", _as_old), (Subscription, "_update", _rotated)]
)
async def test_the_client_in_cpp_finds_mutants(
    part: Any, name: str, mutant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part, name, mutant)
    with pytest.raises(AssertionError, match="was none of"):
        await followed(3, UPDATES, at_once=3)


@pytest.mark.parametrize("auth", [("Basic", f"alice:{TOKEN}"), ("Bearer", TOKEN)])
async def test_token_admits_a_client_over_tls_with_roles(
    tmp_path: Path, auth: tuple[str, str]
) -> None:
    key, certificate = certified(tmp_path)
    tls = Tls(certificate=str(certificate), key=str(key), authority=str(certificate))
    served = {"access": access_of(ROLES.encode(), "roles"), "tls": tls}
    session = {
        "auth_type": auth[0],
        "auth_token": auth[1],
        "use_tls": True,
        "tls_root_certs": str(certificate),
        "client_cert_chain": str(certificate),
        "client_private_key": str(key),
    }
    assert (await followed(5, 20, served=served, session=session)).seen


async def test_missing_token_is_an_error() -> None:
    async with serving(access=access_of(ROLES.encode(), "roles")) as server:
        given = session_of(server.address), OUTPUT
        async with judge("ticking_judge.py", ticking(), *given) as client:
            assert "UNAUTHENTICATED" in await client.says()


VIEWS = [
    view("all", None, None),
    view("some rows", (3, 8), None),
    view("some rows and columns", (0, 4), [0, 8, 9]),
    view("the last rows", (0, 2), None, reverse=True),
    view("beyond the end", (30, 90), [1, 3, 14]),
]


class Watched:
    """A table, what the views should show of it, and a client that shows them."""

    def __init__(self, seed: int, updates: int, seen: Seen) -> None:
        self.truths = {one["name"]: Truth() for one in VIEWS}
        self.snapshots = self._asked = 0
        self._workload = Workload(seed, with_empty_lists=True)
        self._updates = updates
        self._seen, self._rows = seen, Rows(LAYOUT)
        for change in self._workload.begun():
            self._take(*change)

    @property
    def is_over(self) -> bool:
        """Whether each view shows the last table, and each snapshot was told."""
        are_last = all(truth.is_last for truth in self.truths.values())
        return are_last and self.snapshots == self._asked

    async def change(self, client: Judge) -> None:
        for number in range(self._updates):
            if number % AT_MOST == 0:
                await shown(self.truths.values())
            await asyncio.sleep(0.04)  # before: it is over once the last one is told
            self._take(*self._workload.step())
            if number % 50 == 25:
                self._asked += 1
                client.ask("snapshot")

    def see(self, name: str, digest: str) -> None:
        if name == "snapshot":
            assert digest in self.truths["all"].states
            self.snapshots += 1
        else:
            assert name in self.truths, (name, digest)
            self.truths[name].see(digest)

    def _take(self, partition: int, deltas: Any) -> None:
        self._seen.emit(partition, deltas)
        self._rows.apply(partition, deltas)
        for one in VIEWS:
            self.truths[one["name"]].states.append(as_seen(self._rows, one))


async def watched(seed: int, updates: int) -> Watched:
    """Let the client in Java follow in all views; return how that went. Raises AssertionError."""
    environment = java()
    async with serving() as server:
        table = Watched(seed, updates, server.seen)
        async with judge("jvm_judge.py", environment, server.address, OUTPUT) as client:
            client.ask(json.dumps(VIEWS))
            changing = None
            while not (changing and changing.done() and table.is_over):
                line = await client.says()
                assert line, "it says no more"
                said = json.loads(line) if line.startswith("{") else None  # else of itself
                if said and said["view"] == "ready":
                    changing = asyncio.create_task(table.change(client))
                elif said:
                    table.see(said["view"], said["digest"])
            await changing
            line = await client.says(0.5)
            assert not line.startswith("{"), "it was told of what did not happen"
    return table


async def test_the_client_in_java_shows_every_view_of_the_table() -> None:
    table = await watched(1, 300)
    assert table.snapshots == 6
    assert table.truths["all"].seen > 100
    for name, truth in table.truths.items():
        assert truth.is_last, name
        assert truth.seen > 20, name
