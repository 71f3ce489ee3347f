"""The generated modules are what the generator makes of ``proto/`` now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def test_stubs_are_current(tmp_path: Path) -> None:
    sources = sorted(
        path.relative_to(ROOT / "proto").as_posix() for path in ROOT.glob("proto/**/*.proto")
    )
    generate = ["--proto_path=proto", f"--python_out={tmp_path}", f"--pyi_out={tmp_path}"]
    subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", *generate, *sources], check=True, cwd=ROOT
    )
    made = {path.relative_to(tmp_path).as_posix(): path for path in tmp_path.rglob("*_pb2.py*")}
    there = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("ripple/**/*_pb2.py*")}
    assert made.keys() == there
    assert len(made) == 2 * len(sources)
    for name, path in made.items():
        assert path.read_bytes() == (ROOT / name).read_bytes(), f"{name} is old: make protos"


def test_no_python_beside_the_sources() -> None:
    assert {path.suffix for path in (ROOT / "proto").rglob("*.*")} == {".proto"}
