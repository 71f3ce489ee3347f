"""The tutorial does what it says, command by command, in one folder."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.processes import ROOT

PAGE = (ROOT / "docs/tutorial.md").read_text()
BLOCKS = re.findall(r"```(console|python)\n(.*?)```", PAGE, re.DOTALL)
MARK = "=== next ==="
WITHIN_S = 600


@pytest.mark.services
def test_each_command_prints_what_the_tutorial_says(tmp_path: Path) -> None:
    script, printed = [f"export PYTHONPATH={ROOT} PATH={Path(sys.executable).parent}:$PATH"], [""]
    for kind, text in BLOCKS:
        if kind == "python":
            (tmp_path / "products.py").write_text(text)
            script.append(f"cp {tmp_path}/products.py .")
            continue
        for step in text.split("$ ")[1:]:
            command, _, output = step.partition("\n")
            script += [f"echo '{MARK}'", command]
            printed.append(output)
    assert len(printed) > 15
    command = f"cd {tmp_path}\n" + "\n".join(script)
    ended = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=WITHIN_S, check=False
    )
    found = ended.stdout.split(f"{MARK}\n")
    assert found == printed, ended.stderr
