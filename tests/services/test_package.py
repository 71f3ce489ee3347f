"""A plain installation, without any package of the tests, does what the README says."""

from __future__ import annotations

import gzip
import json
import re
import zipfile
import zlib
from pathlib import Path

import pytest

from tests.csv_rows import text_of
from tests.plan_example import TRADES
from tests.services.package import ROOT, Built, build, install, run

pytestmark = pytest.mark.services

README = (ROOT / "README.md").read_text()
(PIPELINE,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
COMMANDS = re.findall(r"^\$ (.*?)(?:  +#.*)?$", README, re.MULTILINE)
# Half of it is what the dashboard's page takes from others; a release, optimized, has a tenth less.
WHEEL_BYTES_MAX = 10_000_000
IMPORT_ALL = """
import pkgutil, importlib, ripple
for module in pkgutil.walk_packages(ripple.__path__, "ripple."):
    if module.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        assert "pip install 'ripple-stream[" in str(error), (module.name, error)
        print(module.name)
"""
# A module or a room of them. All else imports with what a plain installation brings.
NEED_EXTRAS = [
    "ripple.client.dashboard",
    "ripple.client.flight",
    "ripple.client.live.widget",
    "ripple.client.sql.query",
    "ripple.client.sql.tables_read",
    "ripple.connectors.delta_lake",
    "ripple.connectors.files.parquet.objects",
    "ripple.connectors.files.remote.listing",
    "ripple.connectors.files.remote.s3",
    "ripple.connectors.files.remote.s3_writing",
    "ripple.connectors.files.remote.web",
    "ripple.connectors.formats",
    "ripple.connectors.iceberg",
    "ripple.connectors.kafka",
    "ripple.connectors.nats",
    "ripple.connectors.postgres",
    "ripple.connectors.redis",
    "ripple.connectors.websocket",
    "ripple.control.rpc",
    "ripple.control.telemetry",
    "ripple.spark",
    "ripple.storage.store.s3",
    "ripple.storage.store.s3_errors",
    "ripple.testing.cluster.scene",
    "ripple.testing.cluster.worker",
    "ripple.testing.plugin",
    "ripple.world.live_control",
    "ripple.world.live_control_server",
]
CYTHON_FILE = re.compile(rb'^  "[^"]+\.pxd",$', re.MULTILINE)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("build"))


@pytest.fixture(scope="module")
def commands(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(built.wheel, tmp_path_factory.mktemp("installed") / "venv")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "vwap.py").write_text(PIPELINE)
    (tmp_path / "trades.csv").write_text(TRADES)
    (tmp_path / "trades.csv.gz").write_bytes(gzip.compress(TRADES.encode()))
    return tmp_path


def test_every_command_of_the_readme_works(commands: Path, folder: Path) -> None:
    ours = [command for command in COMMANDS if command.split()[0].startswith("ripple")]
    assert set(COMMANDS) - set(ours) == {"make demo", "make install"}
    assert len(ours) == 5
    for command in ours:
        run(["bash", "-c", command], folder, commands)
    run(["python", "vwap.py"], folder, commands)
    results = "AAPL,1708999980000000000,1709000040000000000,150.16666666666666,300,2\n"
    assert text_of(folder / "vwap.csv") == results
    reached = json.loads((folder / "live.csv.cut").read_text().splitlines()[0])["reached"]
    assert reached["cut"] == {"trades": 2}  # whose window the log, which may go on, leaves open


def test_the_demo_runs_from_the_wheel_alone(commands: Path, folder: Path) -> None:
    shown = run(["ripple-vwap-demo", "--synthetic", "20000", "--final"], folder, commands)
    assert len(shown.splitlines()) > 10


def test_new_pipeline_works_from_the_wheel_alone(commands: Path, folder: Path) -> None:
    run(["ripple", "new", "mine"], folder, commands)
    asked = ["ripple", "run", "mine.py", "--source", "orders.csv", "--sink", "-"]
    assert len(run(asked, folder / "mine", commands).splitlines()) == 4
    test = "import test_mine; test_mine.test_it_computes_what_one_event_at_a_time_would()"
    run(["python", "-c", test], folder / "mine", commands)


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_compressed_logs_work(commands: Path, folder: Path, compression: str) -> None:
    (folder / "many.csv").write_text(TRADES * 1000)
    for command in (
        f"ripple log create lg/trades --schema trade --compression {compression}",
        "ripple log append lg/trades many.csv",
        "ripple log verify lg/trades",
    ):
        run(["bash", "-c", command], folder, commands)
    tail = run(["bash", "-c", "ripple log tail lg/trades"], folder, commands)
    assert len(tail.splitlines()) == 2000


def test_every_module_can_be_imported_or_says_what_to_install(commands: Path, folder: Path) -> None:
    printed = run(["python", "-W", "error", "-c", IMPORT_ALL], folder, commands)
    rooms = {
        module: [room for room in NEED_EXTRAS if _is_in(module, room)] for module in printed.split()
    }
    assert [module for module, of in rooms.items() if not of] == []
    assert sorted({room for of in rooms.values() for room in of}) == NEED_EXTRAS


def _is_in(module: str, room: str) -> bool:
    return f"{module}.".startswith(f"{room}.")


def test_the_wheel_holds_what_runs_and_what_types_it(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as packed:
        names = {name for name in packed.namelist() if name.startswith("ripple/")}
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "ripple").rglob("*.py")}
    typed = {path.relative_to(ROOT).as_posix() for path in (ROOT / "ripple").rglob("*.pyi")}
    assert sources | typed | {"ripple/py.typed"} <= names
    pages = ("ripple/client/dashboard/", "ripple/client/live/")
    page = {name for name in names if name.startswith(pages)}
    assert {Path(name).suffix for name in names - page} == {
        ".py",
        ".pyi",
        ".pxd",
        ".so",
        ".typed",
        ".properties",
    }
    assert "ripple/client/dashboard/page/app.js" in page
    assert {"ripple/client/live/live_table.js", "ripple/client/live/live_table.css"} <= page


def test_the_wheel_is_small(built: Built, tmp_path: Path) -> None:
    """With the tree's modules, optimized as in a release."""
    length_bytes = 0
    with zipfile.ZipFile(built.wheel) as packed:
        for one in packed.infolist():
            length_bytes += one.compress_size
            if one.filename.endswith(".so"):
                stripped = tmp_path / "stripped.so"
                run(["strip", "--strip-all", "-o", str(stripped), str(ROOT / one.filename)], ROOT)
                length_bytes += len(zlib.compress(stripped.read_bytes())) - one.compress_size
    assert length_bytes < WHEEL_BYTES_MAX


def test_two_builds_generate_the_same_c(built: Built) -> None:
    """Cython in threads writes other C from run to run: the build must never do that."""
    of_build, of_tree = _generated(built.source), _generated(ROOT)
    assert len(of_build) == 1 + len(list((ROOT / "ripple").rglob("*.pyx")))
    assert of_build.keys() == of_tree.keys()
    assert [name for name in of_build if of_build[name] != of_tree[name]] == []


def _generated(folder: Path) -> dict[str, bytes]:
    """Return the C of each module without the names of Cython's files, known by where they are."""
    files = [path for path in (folder / "ripple").rglob("*") if path.suffix in (".c", ".cpp")]
    return {
        path.relative_to(folder).as_posix(): CYTHON_FILE.sub(b"", path.read_bytes())
        for path in files
    }
