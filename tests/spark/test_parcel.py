"""A pipeline file means the same on executors, or they say why not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ripple.core.errors import PlanError
from ripple.spark import parcel
from ripple.spark.parcel import DifferingError, Parcel

SOURCE = """
import ripple as rp
from {neighbour} import factor

@rp.record(version=1)
class Event:
    key: str
    value: float

def larger(event: Event) -> Event:
    return Event(event.key, factor() * event.value)

pipeline = (
    rp.Pipeline("p").source("events", Event).map("larger", larger, into=Event)
    .partition("by", key="key").fold("sums", total=rp.sum("value")).sink("out")
)
"""


@pytest.fixture
def file(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    neighbour = "neighbour_of_parcels"
    (tmp_path / f"{neighbour}.py").write_text("def factor():\n    return 2.0\n")
    path = tmp_path / "parcelled_pipeline.py"
    path.write_text(SOURCE.format(neighbour=neighbour))
    before, known = list(sys.path), set(sys.modules)
    yield path
    sys.path[:] = before
    for name in set(sys.modules) - known:
        del sys.modules[name]
    parcel._opened.cache_clear()


def packed(file: Path) -> Parcel:
    found = Parcel.of(str(file), lambda plan: b"")
    for name in (file.stem, "neighbour_of_parcels"):
        sys.modules.pop(name, None)  # an executor has imported nothing yet
    return found


def test_a_file_is_carried_as_text_and_its_neighbours_are_found(file: Path) -> None:
    one = packed(file)
    file.unlink()
    assert one.plan().topology_hash == one.topology_hash


def test_differing_imported_file_is_reported(file: Path) -> None:
    one = packed(file)
    Path(file.parent, "neighbour_of_parcels.py").write_text("def factor():\n    return 3.00\n")
    with pytest.raises(DifferingError, match="a file that it imports differs"):
        one.plan()


def test_another_version_of_ripple_is_reported(file: Path) -> None:
    one = replace(packed(file), version="0.0.1")
    with pytest.raises(DifferingError, match=r"the driver has ripple-stream 0\.0\.1, and this"):
        one.plan()


@pytest.mark.parametrize("module", ["no_such_module_anywhere", "ripple.spark.parcel"])
def test_pipeline_of_a_module_that_executors_lack_is_reported(module: str) -> None:
    one = Parcel("p", "0" * 16, pickled=f"c{module}\nnothing\n.".encode())
    with pytest.raises(DifferingError, match=r"'p' comes from .*: name its file") as failed:
        one.plan()
    assert "\n" not in str(failed.value)


def test_argument_that_is_not_a_pipeline_is_rejected() -> None:
    with pytest.raises(PlanError, match="not int"):
        Parcel.of(7, lambda plan: b"")  # type: ignore[arg-type]
