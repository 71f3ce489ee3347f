"""Loading a user's file for its pipeline."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ripple.core.errors import InputError
from ripple.model.pipeline.file import PipelineFileError, load_plan

PIPELINE = """
import ripple as rp
@rp.record(version=1)
class E:
    k: str
    t: rp.Timestamp
pipeline = rp.Pipeline("p").source("s", E).partition("g", key="k").fold("f", n=rp.count()).sink("o")
"""


def test_a_file_that_ends_the_program_is_an_error_that_names_it(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"{PIPELINE}\nraise SystemExit(0)\n")
    with pytest.raises(InputError, match=r"script\.py ends the program .*if __name__ == "):
        load_plan(str(script))


def test_folder_and_streams_are_what_they_were_before(tmp_path: Path) -> None:
    script = tmp_path / "moves.py"
    script.write_text(
        f"{PIPELINE}\nimport os, sys\nos.chdir('/')\nsys.stdout = sys.stderr = None\n"
    )
    before = os.getcwd(), sys.stdout, sys.stderr
    load_plan(str(script))
    assert (os.getcwd(), sys.stdout, sys.stderr) == before


@pytest.mark.parametrize(
    ("line", "end"),
    [
        ("rp.medan('price')", "module 'ripple' has no attribute 'medan'. Did you mean: 'median'?"),
        ("pipeline1.plan()", "name 'pipeline1' is not defined. Did you mean: 'pipeline'?"),
        ("pipeline.plam()", "object has no attribute 'plam'. Did you mean: 'plan'?"),
        ("pipeline.xyzzy()", "object has no attribute 'xyzzy'"),
        ("rp.explode('tags')", "has no attribute 'explode'"),
    ],
)
def test_a_mistyped_name_has_the_hint_of_a_traceback_once(
    tmp_path: Path, line: str, end: str
) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"{PIPELINE}\n{line}\n")
    with pytest.raises(PipelineFileError) as told:
        load_plan(str(script))
    text = str(told.value)
    last = text.splitlines()[-1]
    assert last.endswith(end) or ": write " in last
    assert text.count("Did you mean") == end.count("Did you mean")
