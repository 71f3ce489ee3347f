"""The judgement of a soak: growth, and the cost of a record."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from tests.cluster.plot import Series, svg
from tests.cluster.soak import Sample, cpu_of, grown

MEMORY, CPU = ("memory MiB", "worker"), ("CPU s", "worker")


def samples(memory: list[float]) -> list[tuple[float, Sample]]:
    return [
        (10.0 * (at + 1), {MEMORY: value, CPU: 0.5 * at, ("MiB on disk", "store"): 9.0 * at})
        for at, value in enumerate(memory)
    ]


def test_growth_behind_the_first_quarter_is_found() -> None:
    filled = [50.0, 90.0] + [100.0] * 6
    assert grown(samples(filled)) == []
    assert grown(samples([*filled[:6], 104.0, 109.0])) == []
    assert grown(samples([*filled[:6], 118.0, 122.0])) == ["worker: 100.0 → 120.0 memory MiB"]


def test_small_numbers_may_vary() -> None:
    few = [(float(at), {("threads", "worker"): 9.0 + (at > 5)}) for at in range(8)]
    assert grown(few) == []


def test_cost_of_a_record_is_that_behind_the_first_quarter() -> None:
    assert cpu_of(samples([100.0] * 8), rate=100) == {"worker": 0.5}


def test_drawing_has_a_chart_for_each_kind() -> None:
    drawn = svg({"memory": [Series("a<b", [(0, 1), (1, 3)])], "threads": [Series("c", [])]}, "min")
    texts = [one.text for one in ET.fromstring(drawn).iter() if one.text]
    assert {"memory", "threads", "a<b"} <= set(texts)
