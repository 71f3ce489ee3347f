from __future__ import annotations

import re

import pytest

from ripple.cli.main import SUBCOMMANDS
from tests.cli.processes import DEMO, RIPPLE, ROOT, run

PAGE = (ROOT / "docs/commands.md").read_text()
BLOCKS = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
STEPS = [step for block in BLOCKS for step in block.split("$ ")[1:]]
TRADES = STEPS[0].partition("\n")[2]


def test_every_command_is_on_the_page() -> None:
    assert [name for name in SUBCOMMANDS if f"ripple {name}" not in PAGE] == []


@pytest.mark.parametrize("step", STEPS)
def test_command_on_the_page_prints_what_the_page_says(tmp_path, step):
    command, _, printed = step.partition("\n")
    (tmp_path / "trades.csv").write_text(TRADES)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    script = f"""
export PYTHONPATH={ROOT}
ripple-vwap-demo() {{ {" ".join(DEMO)} "$@"; }}
ripple() {{ {" ".join(RIPPLE)} "$@"; }}
cd {tmp_path}
{command}
"""
    assert run(["bash", "-c", script]).out == printed
