from __future__ import annotations

import sys

from tests.cli.processes import run

HEAVY = (
    "pandas",
    "pyspark",
    "grpc",
    "asyncio",
    "pyarrow.compute",
    "pyarrow.dataset",
    "ripple.wire",
)
PRINT_HEAVY = f"""
import sys
print([name for name in {HEAVY} if name in sys.modules])
"""


def test_running_the_demo_leaves_out_what_it_does_not_need():
    script = f"""
import sys
from ripple.cli.vwap_demo import main
sys.argv[1:] = ["--synthetic", "1000"]
assert main() == 0{PRINT_HEAVY}"""
    ended = run([sys.executable, "-c", script])
    assert ended.rows[-1] == "[]"


def test_help_imports_no_subcommand():
    script = """
from ripple.cli.main import main
try:
    main(["--help"])
except SystemExit as ending:
    assert ending.code == 0
import sys
assert "ripple.cli.run" not in sys.modules
"""
    ended = run([sys.executable, "-c", script])
    assert ended.code == 0, ended.err
