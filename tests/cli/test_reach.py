"""How far outputs are is told of inputs of one partition, too, whose name has no number."""

from __future__ import annotations

from pathlib import Path

import pytest

from ripple.cli.cluster.starting.reach import Reach
from ripple.model.pipeline.file import load_plan
from tests.cli.processes import ripple

TRADES = "".join(f"S{n % 5},1.5,10,{n},X\n" for n in range(40))


@pytest.mark.parametrize("partitions", [1, 3])
def test_an_output_that_has_everything_is_known(tmp_path: Path, partitions: int) -> None:
    topic, out = tmp_path / "trades", tmp_path / "out"
    (tmp_path / "trades.csv").write_text(TRADES)
    ripple(
        "log", "create", "--schema", "trade", topic, "--partitions", partitions, "--key", "symbol"
    )
    ripple("log", "append", topic, tmp_path / "trades.csv")
    plan = load_plan("examples/vwap.py")
    reach = Reach(plan, {"trades": f"log:{topic}"}, {"output": f"log:{out}"})
    assert (reach.look().records, reach.look().of) == (0, 40)
    given = ["run", "examples/vwap.py", "--source", f"log:{topic}", "--sink", f"log:{out}"]
    assert ripple(*given, "--checkpoint-dir", tmp_path / "state").code == 0
    assert reach.look().is_all
