"""The page has what docs/operations.md says of each alert that a cluster raises by itself."""

from __future__ import annotations

import re

from coordinator.dashboard.runbook import RUNBOOK
from ripple.control.telemetry.alerts import RULES
from tests.cli.processes import ROOT


def test_the_runbook_is_that_of_the_docs() -> None:
    page = (ROOT / "docs/operations.md").read_text()
    part = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", page[page.index("### What to do") :])
    entries = " ".join(part.partition("\n## ")[0].split()).split(" - **")
    assert RUNBOOK.keys() >= RULES.keys()
    for name, text in RUNBOOK.items():
        (entry,) = [one for one in entries if f"{name}**" in one.partition(":")[0]]
        assert entry.endswith(text), name
