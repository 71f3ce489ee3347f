"""The house rules that a machine can check: import direction, compiled modules, no stray paths."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# What each wing imports of the others: of those above it only, so that no two need each other, and
# exactly these, so that an arrow which nobody uses any more goes.
WINGS: dict[str, set[str]] = {
    "core": set(),
    "world": {"core"},
    "model": {"core"},
    "engine": {"core", "model"},
    "storage": {"core", "engine", "model", "world"},
    "connectors": {"core", "model", "storage", "world"},
    "exchange": {"core", "engine", "model", "world"},
    "task": {"connectors", "core", "engine", "model", "storage", "world"},
    "control": {"core", "storage", "world"},
    "client": {
        "connectors",
        "control",
        "core",
        "engine",
        "exchange",
        "model",
        "storage",
        "task",
        "world",
    },
    "notebook": {"core", "engine", "model"},
    "coordinator": {"client", "control", "core", "storage", "world"},
    "worker": {
        "connectors",
        "control",
        "core",
        "engine",
        "exchange",
        "model",
        "storage",
        "task",
        "world",
    },
    "testing": {
        "connectors",
        "control",
        "coordinator",
        "core",
        "engine",
        "exchange",
        "model",
        "storage",
        "task",
        "worker",
        "world",
    },
    "spark": {"connectors", "core", "engine", "model", "storage", "task", "testing", "world"},
    "cli": {
        "client",
        "connectors",
        "control",
        "coordinator",
        "core",
        "engine",
        "model",
        "spark",
        "storage",
        "task",
        "worker",
        "world",
    },
}
# The same of the rooms of a wing, which are its folders; its own modules are for all of them.
ROOMS: dict[str, dict[str, set[str]]] = {
    "core": {
        "codec": set(),
    },
    "model": {
        "code_fingerprint": set(),
        "calendar": set(),
        "schema": {"calendar"},
        "expression": {"calendar", "schema"},
        "keys": {"schema"},
        "aggregate": {"keys", "schema"},
        "records": {"expression", "schema"},
        "window": {"calendar", "keys", "schema"},
        "running": {"aggregate", "schema", "window"},
        "pipeline": {
            "aggregate",
            "code_fingerprint",
            "expression",
            "keys",
            "records",
            "running",
            "schema",
            "window",
        },
    },
    "engine": {
        "changes": set(),
        "graph": set(),
        "kernels": {"graph"},
        "snapshots": set(),
        "operators": {"graph", "kernels", "snapshots"},
        "edges": {"graph", "kernels", "operators", "snapshots"},
        "machine": {"changes", "edges", "graph", "kernels", "operators", "snapshots"},
        "migration": {"edges", "machine", "operators", "snapshots"},
    },
    "storage": {
        "fenced": set(),
        "checkpoint": {"fenced"},
        "log": set(),
        "store": set(),
    },
    "connectors": {
        "files": set(),
        "tables": {"files"},
        "delta_lake": {"tables"},
        "iceberg": {"tables"},
        "formats": {"files"},
        "log": {"files"},
        "kafka": {"files", "formats", "log"},
        "nats": {"files", "formats"},
        "postgres": {"files", "formats"},
        "redis": {"formats"},
        "synthetic": {"files"},
        "transforms": set(),
        "websocket": {"formats"},
    },
    "exchange": {
        "wire": set(),
    },
    "task": {
        "dead_letters": set(),
        "asks": {"dead_letters"},
        "repartition": set(),
    },
    "control": {
        "assignment": set(),
        "rpc": {"assignment"},
        "telemetry": {"assignment"},
    },
    "client": {
        "outputs": set(),
        "sql": {"outputs"},
        "dashboard": {"outputs", "sql"},
        "flight": {"outputs", "sql"},
        "live": set(),
    },
    "coordinator": {
        "decisions": set(),
        "service": {"decisions"},
        "dashboard": {"decisions", "service"},
    },
    "worker": {
        "engine": set(),
        "supervisor": set(),
        "host": {"supervisor"},
    },
    "testing": {
        "connectors": set(),
        "reference": set(),
        "sim": set(),
        "crash": {"reference", "sim"},
        "cluster": {"crash", "reference", "sim"},
    },
    "spark": {
        "dataframe": set(),
        "backfill": {"dataframe"},
        "streaming": set(),
    },
    "cli": {
        "lib": set(),
        "checkpoint": {"lib"},
        "cluster": {"lib"},
        "log": {"lib"},
        "run": {"cluster", "lib"},
        "spark": {"lib"},
    },
}
# Packages beside the library, each a wing like those in it: neither imports the other.
PROCESSES = ("coordinator", "worker")
# Kept light for whoever only imports ripple.
SLOW_MODULES = (
    "pyspark",
    "grpc",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "pandas",
    "ripple.exchange.wire",
)


def _wing(module: str) -> str:
    first, _, rest = module.partition(".")
    return first if first in PROCESSES else rest.split(".")[0]


def _room(module: str, root: Path) -> str:
    """Return the folder of its wing that a module is in, "" for the wing itself."""
    parts = module.split(".")
    depth = 1 if parts[0] in PROCESSES else 2
    is_folder = len(parts) > depth and root.joinpath(*parts[: depth + 1]).is_dir()
    return parts[depth] if is_folder else ""


def _imports(path: Path) -> set[str]:
    """Return the modules of ours that a file names in imports and cimports."""
    return {
        name
        for name in _all_imports(path)
        if name.startswith("ripple.") or name.split(".")[0] in PROCESSES
    }


@cache
def _nodes(path: Path) -> list[ast.AST]:
    """Return whatever a file of Python has that is looked at here."""
    looked_at = (ast.Import, ast.ImportFrom, ast.Assign, ast.Compare)
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, looked_at)]


@cache
def _all_imports(path: Path) -> set[str]:
    if path.suffix == ".py":
        found: set[str] = set()
        for node in _nodes(path):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                if node.module == "ripple":
                    found.update(f"ripple.{alias.name}" for alias in node.names)
                found.add(node.module)
    else:
        text = path.read_text()
        found = set(re.findall(r"^\s*from ([\w.]+) c?import", text, re.MULTILINE))
        found |= set(re.findall(r"^\s*c?import ([\w.]+)", text, re.MULTILINE))
    return found


def _sources(*packages: str, root: Path = ROOT) -> list[Path]:
    roots = [root / package for package in packages or ("ripple", *PROCESSES)]
    return sorted(p for root in roots for s in ("*.py", "*.pyx", "*.pxd") for p in root.rglob(s))


@cache
def _arrows(root: Path) -> tuple[dict[str, dict[str, str]], dict[str, dict[str, dict[str, str]]]]:
    """Return the arrows between wings, and by wing between its rooms, each with one who uses it."""
    wings: dict[str, dict[str, str]] = {}
    rooms: dict[str, dict[str, dict[str, str]]] = {}
    for path in _sources(root=root):
        module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        if module == "ripple":
            continue
        wing, room = _wing(module), _room(module, root)
        of_wing = wings.setdefault(wing, {})
        for imported in _imports(path):
            other = _wing(imported)
            if other != wing:
                of_wing[other] = module
            elif room and _room(imported, root) not in ("", room):
                rooms.setdefault(wing, {}).setdefault(room, {})[_room(imported, root)] = module
    return wings, rooms


def _broken(used: dict[str, dict[str, str]], allowed: dict[str, set[str]]) -> list[str]:
    """Return what is wrong with a table, or with the imports that it speaks of."""
    problems: list[str] = []
    above: set[str] = set()
    for part, its in allowed.items():
        problems += [f"{part} may import {one}, which is not above it" for one in its - above]
        above.add(part)
    for part, arrows in used.items():
        may = allowed.get(part, set())
        problems += [
            f"{who} imports {one}: {part} may not" for one, who in arrows.items() if one not in may
        ]
    for part, its in allowed.items():
        problems += [f"{part} imports nothing of {one}" for one in its - used.get(part, {}).keys()]
    return problems


def test_wings_import_those_above_them() -> None:
    wings, _ = _arrows(ROOT)
    assert wings.keys() == WINGS.keys()
    assert not _broken(wings, WINGS)


def test_rooms_of_a_wing_import_those_above_them() -> None:
    _, rooms = _arrows(ROOT)
    assert rooms.keys() <= ROOMS.keys()
    for wing, table in ROOMS.items():
        assert not _broken(rooms.get(wing, {}), table), wing


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("ripple/core/planted.py", "ripple.core.planted imports engine: core may not"),
        ("ripple/storage/log/planted.py", "ripple.storage.log.planted imports engine: storage may"),
        ("coordinator/planted.py", "coordinator.planted imports engine: coordinator may not"),
    ],
)
def test_an_import_that_points_upward_is_found(where: str, said: str, tmp_path: Path) -> None:
    planted = tmp_path / where
    planted.parent.mkdir(parents=True)
    planted.write_text("from ripple.engine.machine import Engine\n")
    wings, _ = _arrows(tmp_path)
    table = {
        wing: its - {"engine"} if where.startswith("ripple/st") else its
        for wing, its in WINGS.items()
    }
    assert any(said in problem for problem in _broken(wings, table))


def test_a_room_that_imports_one_below_it_is_found(tmp_path: Path) -> None:
    for room in ("graph", "machine"):
        (tmp_path / "ripple/engine" / room).mkdir(parents=True)
    planted = tmp_path / "ripple/engine/graph/planted.py"
    planted.write_text("from ripple.engine.machine import engine\n")
    _, rooms = _arrows(tmp_path)
    problems = _broken(rooms["engine"], ROOMS["engine"])
    assert "ripple.engine.graph.planted imports machine: graph may not" in problems


def test_nothing_is_looked_up_in_a_range() -> None:
    """``x in range(...)`` walks through all of it unless x is an int and nothing but an int."""
    nodes = {path: _nodes(path) for path in _sources() if path.suffix == ".py"}
    named = {
        target.id
        for its in nodes.values()
        for node in its
        if isinstance(node, ast.Assign) and _is_range(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found = [
        f"{path}:{node.lineno}"
        for path, its in nodes.items()
        for node in its
        if isinstance(node, ast.Compare)
        for how, where in zip(node.ops, node.comparators, strict=True)
        if isinstance(how, ast.In | ast.NotIn)
        and (_is_range(where) or (isinstance(where, ast.Name) and where.id in named))
    ]
    assert not found, found


def _is_range(node: ast.expr) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Name) and called.id == "range"


def test_only_the_spark_part_imports_pyspark() -> None:
    for path in _sources():
        if "spark" not in path.parts:
            assert not re.search(r"^\s*(import|from) pyspark", path.read_text(), re.MULTILINE), path


# Modules that say what they need, or do without it, and the extra that brings it.
OF_EXTRA = {
    "ripple/control/telemetry/exposition.py": ("cluster", {"prometheus_client"}),
    "ripple/control/telemetry/log.py": ("cluster", {"structlog"}),
    "ripple/control/telemetry/tracing.py": ("tracing", {"opentelemetry", "requests"}),
    "ripple/client/dashboard/entrance.py": ("dashboard", {"aiohttp"}),
    "ripple/client/dashboard/listening.py": ("dashboard", {"aiohttp"}),
    "ripple/client/dashboard/viewers.py": ("dashboard", {"aiohttp"}),
    "ripple/client/dashboard/web.py": ("dashboard", {"aiohttp"}),
    "ripple/control/event_loop.py": ("cluster", {"uvloop"}),
    "ripple/model/calendar/exchange.py": ("calendars", {"exchange_calendars"}),
    "ripple/client/live/widget.py": ("notebook", {"anywidget", "traitlets"}),
    "ripple/task/progress.py": ("notebook", {"IPython"}),
    "ripple/connectors/kafka/client.py": ("kafka", {"aiokafka"}),
    "ripple/connectors/kafka/consumer.py": ("kafka", {"aiokafka"}),
    "ripple/connectors/kafka/private.py": ("kafka", {"aiokafka"}),
    "ripple/connectors/kafka/private_connecting.py": ("kafka", {"aiokafka"}),
    "ripple/connectors/kafka/private_topics.py": ("kafka", {"aiokafka"}),
    "ripple/connectors/kafka/private_writing.py": ("kafka", {"aiokafka"}),
    "ripple/connectors/kafka/producer.py": ("kafka", {"aiokafka"}),
    "ripple/connectors/kafka/error_mapping.py": ("kafka", {"aiokafka"}),
    "ripple/connectors/kafka/broker.py": ("kafka", {"aiokafka"}),
    "ripple/client/sql/tables_read.py": ("query", {"duckdb"}),
    "ripple/client/sql/query.py": ("query", {"duckdb"}),
    "ripple/connectors/formats/avro.py": ("avro", {"fastavro"}),
    "ripple/connectors/formats/avro_writers.py": ("avro", {"fastavro"}),
    "ripple/connectors/formats/msgpack.py": ("msgpack", {"msgspec"}),
    "ripple/connectors/formats/protobuf.py": ("protobuf", {"google"}),
    "ripple/connectors/nats/inputs.py": ("nats", {"nats"}),
    "ripple/connectors/nats/liftbridge.py": ("nats", {"nats"}),
    "ripple/connectors/nats/opening.py": ("nats", {"nats"}),
    "ripple/connectors/nats/session.py": ("nats", {"nats", "nkeys"}),
    "ripple/connectors/nats/sink.py": ("nats", {"nats"}),
    "ripple/connectors/nats/subject.py": ("nats", {"nats"}),
    "ripple/connectors/postgres/inputs.py": ("postgres", {"psycopg"}),
    "ripple/connectors/postgres/source_opening.py": ("postgres", {"psycopg"}),
    "ripple/connectors/postgres/slot.py": ("postgres", {"psycopg"}),
    "ripple/connectors/postgres/stream.py": ("postgres", {"psycopg"}),
    "ripple/connectors/redis/page.py": ("redis", {"redis"}),
    "ripple/connectors/redis/session.py": ("redis", {"redis"}),
    "ripple/connectors/redis/inputs.py": ("redis", {"redis"}),
    "ripple/connectors/redis/opening.py": ("redis", {"redis"}),
    "ripple/connectors/delta_lake/table.py": ("delta", {"deltalake"}),
    "ripple/connectors/iceberg/catalog.py": ("iceberg", {"pyiceberg", "sqlalchemy"}),
    "ripple/connectors/iceberg/source.py": ("iceberg", {"pyiceberg"}),
    "ripple/connectors/iceberg/table.py": ("iceberg", {"pyiceberg"}),
    "ripple/connectors/postgres/record.py": ("postgres", {"psycopg"}),
    "ripple/connectors/postgres/answers.py": ("postgres", {"psycopg"}),
    "ripple/connectors/postgres/session.py": ("postgres", {"psycopg"}),
    "ripple/connectors/postgres/sink.py": ("postgres", {"psycopg"}),
    "ripple/connectors/postgres/table.py": ("postgres", {"psycopg"}),
    "ripple/connectors/postgres/sink_opening.py": ("postgres", {"psycopg"}),
    "ripple/client/flight/barrage/__init__.py": ("barrage", {"flatbuffers"}),
    "ripple/client/flight/barrage/batches.py": ("barrage", {"flatbuffers"}),
    "ripple/client/flight/barrage/deephaven_pb2.py": ("cluster", {"google"}),
    "ripple/client/flight/barrage/exchange.py": ("cluster", {"google"}),
    "ripple/client/flight/barrage/messages.py": ("barrage", {"flatbuffers"}),
    "ripple/client/flight/barrage/server.py": ("cluster", {"grpc"}),
    "ripple/client/flight/barrage/service.py": ("cluster", {"google"}),
    "ripple/client/flight/messages/__init__.py": ("cluster", {"google"}),
    "ripple/client/flight/messages/flight_pb2.py": ("cluster", {"google"}),
    "ripple/client/flight/messages/flight_sql_pb2.py": ("cluster", {"google"}),
    "ripple/client/flight/sql.py": ("cluster", {"google"}),
    "ripple/client/flight/sql_catalogue.py": ("cluster", {"google"}),
    "ripple/client/flight/server.py": ("cluster", {"grpc"}),
    "ripple/client/flight/service.py": ("cluster", {"google"}),
    "ripple/control/rpc/__init__.py": ("cluster", {"google"}),
    "ripple/control/rpc/cluster_pb2.py": ("cluster", {"google"}),
    "ripple/control/rpc/coordinator_pb2.py": ("cluster", {"google"}),
    "ripple/control/rpc/engine_pb2.py": ("cluster", {"google"}),
    "ripple/control/rpc/mapping.py": ("cluster", {"google"}),
    "ripple/control/rpc/worker_pb2.py": ("cluster", {"google"}),
    "ripple/spark/backfill/backfilling.py": ("spark", {"pyspark"}),
    "ripple/spark/backfill/frame_history.py": ("spark", {"pyspark"}),
    "ripple/spark/executors.py": ("spark", {"pyspark"}),
    "ripple/spark/dataframe/applying.py": ("spark", {"pyspark"}),
    "ripple/spark/dataframe/frames.py": ("spark", {"pyspark"}),
    "ripple/spark/jvm.py": ("spark", {"pyspark"}),
    "ripple/spark/dataframe/named.py": ("spark", {"pyspark"}),
    "ripple/spark/dataframe/source_frame.py": ("spark", {"pyspark"}),
    "ripple/spark/dataframe/table_function.py": ("spark", {"pyspark"}),
    "ripple/spark/dataframe/table_versions.py": ("spark", {"pyspark"}),
    "ripple/spark/merging.py": ("spark", {"pyspark"}),
    "ripple/spark/reading.py": ("spark", {"pyspark"}),
    "ripple/spark/replaying.py": ("spark", {"pyspark"}),
    "ripple/spark/session.py": ("spark", {"pyspark"}),
    "ripple/spark/sources.py": ("spark", {"pyspark"}),
    "ripple/spark/streaming/running.py": ("spark", {"pyspark"}),
    "ripple/spark/streaming/source.py": ("spark", {"pyspark"}),
    "ripple/spark/validating.py": ("spark", {"pyspark"}),
    "ripple/spark/work.py": ("spark", {"pyspark"}),
    "ripple/storage/store/s3.py": ("s3", {"aiobotocore", "botocore"}),
    "ripple/storage/store/s3_errors.py": ("s3", {"aiohttp", "botocore"}),
    "ripple/connectors/files/remote/s3.py": ("s3", {"botocore"}),
    "ripple/connectors/files/remote/web.py": ("https", {"urllib3"}),
    "ripple/connectors/websocket/source.py": ("websocket", {"websockets"}),
    "ripple/testing/plugin.py": ("test", {"pytest"}),
    "ripple/world/live_control.py": ("cluster", {"grpc"}),
    "ripple/world/live_control_server.py": ("cluster", {"grpc", "grpc_health", "grpc_reflection"}),
}
DISTRIBUTION_OF = {
    "aiobotocore": "aiobotocore",
    "IPython": "anywidget",  # by its ipywidgets
    "aiohttp": "aiohttp",
    "anywidget": "anywidget",
    "traitlets": "anywidget",
    "aiokafka": "aiokafka",
    "deltalake": "deltalake",
    "pyiceberg": "pyiceberg",
    "sqlalchemy": "pyiceberg",  # by its extras of catalogs in SQL
    "duckdb": "duckdb",
    "exchange_calendars": "exchange-calendars",
    "fastavro": "fastavro",
    "flatbuffers": "flatbuffers",
    "botocore": "aiobotocore",  # which says which botocore fits
    "google": "protobuf",
    "psycopg": "psycopg",
    "nats": "nats-py",
    "nkeys": "nats-py",  # its extra of that name
    "redis": "redis",
    "grpc": "grpcio",
    "grpc_health": "grpcio-health-checking",
    "grpc_reflection": "grpcio-reflection",
    "msgspec": "msgspec",
    "opentelemetry": "opentelemetry-sdk",
    "requests": "opentelemetry-exporter-otlp-proto-http",  # which sends by it
    "prometheus_client": "prometheus-client",
    "pytest": "pytest",
    "structlog": "structlog",
    "pyspark": "pyspark",
    "urllib3": "urllib3",
    "uvloop": "uvloop",
    "websockets": "websockets",
}


def test_the_library_imports_nothing_but_its_dependencies() -> None:
    """What is only in an extra, or among the tests' packages, is missing for some users."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    imported: set[str] = set()
    for path in _sources():
        others = {name.split(".")[0] for name in _all_imports(path) if name != "cython"}
        others -= {*sys.stdlib_module_names, *PROCESSES, "ripple", "libc", "libcpp", "cpython"}
        extra, brought = OF_EXTRA.get(path.relative_to(ROOT).as_posix(), ("", set()))
        assert brought <= others, f"{path} no longer needs all of its extra"
        if extra:
            assert {DISTRIBUTION_OF[name] for name in brought} <= _named(
                project["optional-dependencies"][extra]
            )
        imported |= others - brought
    assert imported == _named(project["dependencies"])


def _named(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=~!;\[ ]", each)[0].lower() for each in requirements}


def _extensions() -> list[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return [module["name"] for module in settings["tool"]["setuptools"]["ext-modules"]]


def test_compiled_modules_are_those_on_disk_and_in_order() -> None:
    on_disk = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in (ROOT / "ripple").rglob("*.pyx")
    ]
    assert sorted(on_disk) == _extensions()


@pytest.mark.parametrize("name", _extensions())
def test_module_runs_compiled(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__file__ is not None
    assert module.__file__.endswith(tuple(EXTENSION_SUFFIXES)), module.__file__


def test_every_package_is_listed_for_installation() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    on_disk = {
        ".".join(path.parent.relative_to(ROOT).parts) for path in ROOT.glob("ripple/**/__init__.py")
    }
    assert {name for name in settings["packages"] if name.startswith("ripple")} == on_disk


def test_importing_ripple_loads_nothing_slow() -> None:
    code = f"import sys, ripple; print([m for m in {SLOW_MODULES!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "[]"


def test_versions_agree() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["project"]["version"] == importlib.import_module("ripple").__version__


def test_lines_of_documents_fit() -> None:
    found = []
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        text = re.sub(r"^```.*?^```", _blank, path.read_text(), flags=re.MULTILINE | re.DOTALL)
        lines = enumerate(text.splitlines(), 1)
        found += [f"{path}:{at}" for at, line in lines if len(line) > 120 and line[0] != "|"]
    assert not found, "wrap these lines at 120 characters"


def _blank(block: re.Match[str]) -> str:
    """Return the lines of a block of code without their text."""
    return "\n" * block[0].count("\n")
