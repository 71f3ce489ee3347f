from __future__ import annotations

import signal
import sys
import tomllib

import pytest

from tests.cli.processes import ROOT, Ended, run

HEAVY = (
    "pandas",
    "pyspark",
    "grpc",
    "asyncio",
    "numpy.ma",
    "numpy.typing",
    "pyarrow.compute",
    "pyarrow.dataset",
    "ripple.exchange.wire",
    "ripple.model.code_fingerprint.form",
    "ripple.engine.machine.follower",
    "ripple.engine.operators.windowed_fold",
)
PRINT_HEAVY = f"""
import sys
print([name for name in {HEAVY} if name in sys.modules])
"""


def test_running_the_demo_leaves_out_what_it_does_not_need():
    script = f"""
import sys
from ripple.cli.run.vwap_demo import main
sys.argv[1:] = ["--synthetic", "1000"]
assert main() == 0{PRINT_HEAVY}
print(*(name for name, module in sys.modules.items() if name.startswith("ripple")
        and module.__spec__.origin.endswith((".so", ".pyd"))))"""
    ended = run([sys.executable, "-c", script])
    assert ended.rows[-2] == "[]"
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    every = {module["name"] for module in tools["setuptools"]["ext-modules"]}
    compiled = set(ended.rows[-1].split()) - {"ripple._cyutility"}
    assert every - compiled == set(tools["ripple"]["not-in-demo"])  # make demo compiles the others


def test_frozen_dataclasses_are_not_compiled_where_the_demo_starts():
    """Half a millisecond each; ``@frozen`` makes the same but of what users make subclasses."""
    script = """
import sys
import ripple.cli.run.vwap_demo
for name, module in sorted(sys.modules.items()):
    for kind in vars(module).values():
        if name.startswith("ripple.") and isinstance(kind, type) and kind.__module__ == name:
            made = vars(kind).get("__dataclass_params__")
            if made and made.frozen:
                print(name, kind.__name__)
"""
    homes = {row.rpartition(".")[0] for row in run([sys.executable, "-c", script]).rows}
    assert homes == {"ripple.model.aggregate", "ripple.cli.run"}


def test_processes_of_a_cluster_import_no_pandas() -> None:
    """It takes a second and 36 MB of each, where it is installed."""
    script = "import sys, worker.process, worker.engine.child; print('pandas' in sys.modules)"
    assert run([sys.executable, "-c", script]).rows == ["False"]


# All that `ripple --help` needs; with more of Ripple, sooner or later NumPy and Arrow come too.
ENOUGH_FOR_HELP = {
    "ripple",
    "ripple.cli",
    "ripple.cli.lib",
    "ripple.cli.lib.environment",
    "ripple.cli.lib.exits",
    "ripple.cli.main",
    "ripple.connectors",
    "ripple.connectors.target",
    "ripple.control",
    "ripple.control.process",
    "ripple.core",
    "ripple.core.errors",
    "ripple.core.lazy",
    "ripple.core.uncompiled",
}


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_telling_what_there_is_imports_next_to_nothing(option: str):
    script = f"""
import sys
from ripple.cli.main import main
try:
    main(["{option}"])
except SystemExit as ending:
    assert ending.code == 0
print(*sorted(name for name in sys.modules if name.split(".")[0] == "ripple"))
print([name for name in ("numpy", "pyarrow", "asyncio") if name in sys.modules])
"""
    ended = run([sys.executable, "-c", script])
    assert set(ended.rows[-2].split()) == ENOUGH_FOR_HELP
    assert ended.rows[-1] == "[]"


def test_importing_ripple_imports_nothing_of_it_until_a_name_is_used():
    script = """
import sys, ripple
print([name for name in sys.modules if name.startswith(("ripple.", "numpy", "pyarrow"))])
ripple.Pipeline
print("ripple.model.pipeline" in sys.modules, "numpy" in sys.modules)
"""
    assert run([sys.executable, "-c", script]).rows == [
        "['ripple.core', 'ripple.core.lazy', 'ripple.core.uncompiled']",
        "True True",
    ]


IMPATIENT = """
import os, sys
from importlib.abc import MetaPathFinder
from ripple.cli import start

class Impatient(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "{module}":
            os.kill(os.getpid(), {number})

sys.meta_path.insert(0, Impatient())
sys.argv[1:] = {arguments}
start.{command}()
"""
MODULES = {
    "coordinator": "coordinator.__main__",
    "gateway": "ripple.client.flight.__main__",
    "ripple": "ripple.cli.main",
    "vwap_demo": "ripple.cli.run.vwap_demo",
    "worker": "worker.__main__",
}


def signalled(command: str, number: int, *arguments: str, module: str = "") -> Ended:
    """Send a signal to a command while it imports a module, at first its own."""
    module = module or MODULES[command]
    script = IMPATIENT.format(
        module=module, number=int(number), arguments=list(arguments), command=command
    )
    return run([sys.executable, "-c", script])


@pytest.mark.parametrize("command", ["coordinator", "ripple", "vwap_demo"])
def test_interrupt_while_the_command_is_imported_ends_it_in_silence(command: str) -> None:
    ended = signalled(command, signal.SIGINT)
    assert (ended.code, ended.out, ended.err) == (130, "", "")


RUN = ("run", "file.py", "--source", "log:a/b", "--checkpoint-dir", "state")


@pytest.mark.parametrize(
    ("command", "arguments", "module"),
    [
        ("coordinator", (), ""),
        ("worker", (), ""),
        ("gateway", (), ""),
        ("ripple", RUN, ""),
        ("ripple", RUN, "ripple.cli.run.run"),
        ("ripple", ("cluster", "up", "file.py"), "ripple.cli.cluster.cluster"),
    ],
)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_service_that_is_told_to_end_while_it_is_imported_ends_well(
    command: str, arguments: tuple[str, ...], module: str, number: int
) -> None:
    ended = signalled(command, number, *arguments, module=module)
    assert (ended.code, ended.out, ended.err) == (0, "", "")


def test_command_that_is_no_service_is_ended_by_a_signal() -> None:
    module = "ripple.cli.run.run"
    ended = signalled("ripple", signal.SIGTERM, "run", "file.py", "--sink", "-", module=module)
    assert (ended.code, ended.err) == (143, "ripple: ended by SIGTERM\n")


def test_installed_commands_are_those_that_can_be_interrupted_at_once() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert set(settings["project"]["scripts"].values()) == {
        "ripple.cli.start:coordinator",
        "ripple.cli.start:gateway",
        "ripple.cli.start:ripple",
        "ripple.cli.start:vwap_demo",
        "ripple.cli.start:worker",
    }
    script = """
import sys
from ripple.cli import start
sys.argv[1:] = ["info"]
assert start.ripple() == 0
"""
    assert run([sys.executable, "-c", script]).code == 0
