"""The record of a cluster's pipelines: each change is one entry, made on top of the newest."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from ripple.control.assignment.errors import AssignmentError
from ripple.control.assignment.pipeline_chain import PipelineChain
from ripple.control.assignment.pipelines import PIPELINES_MAX, Hosted, Pipelines, place_of
from ripple.core.errors import InputError
from ripple.storage.store.memory import MemoryStore

VWAP = Hosted("vwap", 1, "vwap.py", "log:in/trades", ("log:out/vwap",), 4)
COUNTS = Hosted("counts", 1, "more/counts.py:p", "log:in/trades", ("rows=log:out/counts",), 4)


def test_pipelines_get_the_lowest_free_number() -> None:
    both = Pipelines().added(VWAP).added(COUNTS)
    assert [(one.name, one.number) for one in both.all] == [("vwap", 1), ("counts", 2)]
    again = both.removed("vwap").added(replace(VWAP, name="other"))
    assert [(one.name, one.number) for one in again.all] == [("other", 1), ("counts", 2)]


def test_a_change_raises_the_revision_of_one() -> None:
    both = Pipelines().added(VWAP).added(COUNTS)
    after = both.changed("counts", lambda one: replace(one, is_stopped=True))
    assert after.get("counts") == replace(COUNTS, number=2, is_stopped=True, revision=2)
    assert after.get("vwap") == both.get("vwap")


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (VWAP, "has a pipeline vwap already: ripple pipeline change"),
        (replace(COUNTS, sinks=("x=log:out/vwap",)), "vwap and counts both write log:out/vwap"),
        (replace(COUNTS, name="a b"), "is called 'a b'"),
        (replace(COUNTS, name="../b"), "is called '../b'"),
        (replace(COUNTS, file="/etc/x.py"), "/etc/x.py is no FILE.py in the folder"),
        (replace(COUNTS, file="../x.py"), "../x.py is no FILE.py in the folder"),
        (replace(COUNTS, file="x"), "x is no FILE.py"),
        (replace(COUNTS, source="log:" + "x" * 5000), "has 5004 characters, at most 4096"),
    ],
)
def test_what_cannot_run_beside_the_others_is_refused(wrong: Hosted, text: str) -> None:
    with pytest.raises(InputError, match=text.replace("'", ".")):
        Pipelines().added(VWAP).added(wrong)


def test_there_is_a_most_of_pipelines() -> None:
    full = Pipelines()
    for number in range(PIPELINES_MAX):
        full = full.added(replace(VWAP, name=f"p{number}", sinks=(f"log:out/{number}",)))
    with pytest.raises(InputError, match="remove one with ripple pipeline remove"):
        full.added(replace(VWAP, sinks=("log:out/more",)))


def test_an_unknown_pipeline_is_answered_with_those_there() -> None:
    with pytest.raises(InputError, match="no pipeline x: it has counts, vwap"):
        Pipelines().added(VWAP).added(COUNTS).get("x")
    with pytest.raises(InputError, match="it has none yet"):
        Pipelines().removed("x")


def test_starting_what_runs_leaves_its_processes_alone() -> None:
    runs = Pipelines().added(VWAP)
    assert runs.stopped("vwap", is_stopped=False) is runs
    stopped = runs.stopped("vwap", is_stopped=True)
    assert (stopped.get("vwap").is_stopped, stopped.get("vwap").revision) == (True, 2)
    assert stopped.stopped("vwap", is_stopped=True) is stopped


class Overtaken(MemoryStore):
    """A store in which another writer adds an entry just before the first one of this writer."""

    async def put_if_absent(self, name: str, data: bytes) -> bool:
        if not self.is_overtaken:
            self.is_overtaken = True
            await PipelineChain(self, "other").change(lambda there: there.added(VWAP))
        return await super().put_if_absent(name, data)

    is_overtaken = False


def test_two_writers_at_once_both_have_their_change() -> None:
    async def both() -> Pipelines:
        store = Overtaken()
        after = await PipelineChain(store, "one").change(lambda there: there.added(COUNTS))
        assert after == await PipelineChain(store).newest()
        return after

    found = asyncio.run(both())
    assert [(one.name, one.number, one.revision) for one in found.all] == [
        ("vwap", 1, 1),
        ("counts", 2, 1),
    ]
    assert found.entry == 2


def test_a_refused_change_writes_nothing() -> None:
    async def refused() -> Pipelines:
        store = MemoryStore()
        await PipelineChain(store, "a").change(lambda there: there.added(VWAP))
        with pytest.raises(InputError):
            await PipelineChain(store, "b").change(lambda there: there.added(VWAP))
        return await PipelineChain(store).newest()

    assert asyncio.run(refused()).entry == 1


def test_a_damaged_entry_is_not_passed_over_for_an_older_one() -> None:
    async def damaged() -> None:
        store = MemoryStore()
        chain = PipelineChain(store, "a")
        await chain.change(lambda there: there.added(VWAP))
        await store.put_if_absent("cluster/pipelines/0000000000000002.json", b"torn")
        with pytest.raises(AssignmentError, match="it says which pipelines run"):
            await PipelineChain(store).newest()

    asyncio.run(damaged())


def test_each_pipeline_has_its_own_store() -> None:
    assert place_of("state", "") == "state"
    assert place_of("s3://b/p", "vwap") == "s3://b/p/pipelines/vwap"
