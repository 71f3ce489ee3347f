"""The generated modules are what the generator makes of ``proto/`` now."""

from __future__ import annotations

from tests.control.rpc.generate import ROOT, generated, sources


def test_stubs_are_current() -> None:
    made = generated()
    there = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("ripple/**/*_pb2.py*")}
    assert made.keys() == there
    assert len(made) == 2 * len(sources())
    for name, text in made.items():
        assert text == (ROOT / name).read_text(), f"{name} is old: make protos"


def test_no_python_beside_the_sources() -> None:
    assert {path.suffix for path in (ROOT / "proto").rglob("*.*")} == {".proto"}
