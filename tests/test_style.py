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

# What each part imports of the others: of those above it only, so that no two need each other, and
# exactly these, so that an arrow which nobody uses any more goes. "*" is any part above.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "access": {"errors"},
    "credentials": {"access"},
    "reread": {"errors"},
    "arguments": {"errors"},
    "frozen": set(),
    "hashing": set(),
    "sexp": {"errors"},
    "schema": {"arguments", "errors", "frozen", "sexp"},
    "batch": {"frozen", "schema"},
    "keys": {"errors", "frozen", "hashing", "schema"},
    "aggregate": {"arguments", "errors", "frozen", "keys", "schema"},
    "encoding": {"errors"},
    "extras": set(),
    "lazily": set(),
    "world": {"access", "errors", "extras", "frozen", "lazily"},
    "fenced": {"encoding", "errors", "world"},
    "assignment": {"errors", "fenced", "world"},
    "causes": set(),
    "cut": {"errors"},
    "ops": set(),
    "processors": set(),
    "expression": {"arguments", "errors", "frozen", "schema", "sexp"},
    "records": {"arguments", "errors", "expression", "frozen", "schema"},
    "delta": {"errors", "keys", "ops", "records", "schema", "sexp"},
    "graph": {"arguments", "errors", "frozen", "hashing", "keys", "sexp"},
    "topology": {"errors", "expression", "sexp"},
    "code": {"errors", "frozen", "sexp", "topology"},
    "window": {"arguments", "errors", "frozen", "keys", "schema"},
    "pipeline": {
        "aggregate",
        "arguments",
        "code",
        "errors",
        "expression",
        "frozen",
        "ops",
        "records",
        "schema",
        "sexp",
        "topology",
        "window",
    },
    "fold": {
        "aggregate",
        "errors",
        "expression",
        "graph",
        "hashing",
        "keys",
        "ops",
        "pipeline",
        "schema",
        "window",
    },
    "notebook": {
        "aggregate",
        "arguments",
        "errors",
        "expression",
        "graph",
        "keys",
        "records",
        "schema",
        "sexp",
    },
    "engine": {
        "aggregate",
        "arguments",
        "cut",
        "delta",
        "errors",
        "expression",
        "fold",
        "frozen",
        "graph",
        "hashing",
        "keys",
        "ops",
        "pipeline",
        "schema",
        "topology",
        "window",
    },
    "change": {"engine", "errors", "pipeline", "schema", "sexp", "topology"},
    "checkpoint": {"engine", "errors", "fenced", "world"},
    "log_place": {"errors"},
    "log": {"batch", "encoding", "errors", "keys", "log_place", "schema", "sexp", "world"},
    "connectors": {
        "batch",
        "causes",
        "cut",
        "encoding",
        "errors",
        "extras",
        "frozen",
        "log",
        "log_place",
        "ops",
        "pipeline",
        "processors",
        "records",
        "schema",
        "world",
    },
    "environment": set(),
    "event_loop": set(),
    "settings": {"errors", "sexp"},
    "process": set(),
    "secrets": set(),
    "daemon": {"errors", "event_loop", "process", "secrets", "settings"},
    "events": set(),
    "telling": {"cut", "events"},
    "traces": set(),
    "observe": {
        "assignment",
        "causes",
        "cut",
        "daemon",
        "events",
        "extras",
        "process",
        "secrets",
        "sexp",
        "telling",
        "traces",
        "world",
    },
    "wire": {"delta", "encoding", "errors", "schema", "sexp", "traces"},
    "exchange": {
        "access",
        "credentials",
        "cut",
        "delta",
        "encoding",
        "engine",
        "errors",
        "ops",
        "pipeline",
        "schema",
        "sexp",
        "traces",
        "wire",
        "world",
    },
    "rpc": {"assignment", "errors", "extras"},
    "observing": {
        "assignment",
        "cut",
        "delta",
        "engine",
        "errors",
        "exchange",
        "extras",
        "frozen",
        "lazily",
        "rpc",
        "wire",
        "world",
    },
    "partition": {
        "batch",
        "causes",
        "change",
        "checkpoint",
        "connectors",
        "cut",
        "encoding",
        "engine",
        "errors",
        "events",
        "fenced",
        "frozen",
        "hashing",
        "keys",
        "log",
        "ops",
        "pipeline",
        "schema",
        "traces",
        "window",
        "world",
    },
    "dashboard": {
        "access",
        "checkpoint",
        "connectors",
        "delta",
        "errors",
        "events",
        "extras",
        "fenced",
        "observe",
        "observing",
        "ops",
        "partition",
        "pipeline",
        "world",
    },
    "probes": {"world"},
    "validity": {"errors", "reread", "world"},
    "process_settings": {"access", "reread", "settings", "world"},
    "store": {"errors", "extras", "settings", "world"},
    "coordinator": {
        "access",
        "assignment",
        "credentials",
        "daemon",
        "dashboard",
        "errors",
        "fenced",
        "log_place",
        "observe",
        "observing",
        "probes",
        "process",
        "process_settings",
        "rpc",
        "settings",
        "store",
        "validity",
        "world",
    },
    "pipeline_file": {"errors", "pipeline"},
    "runner": {"connectors", "engine", "errors", "partition", "pipeline"},
    "repartition": {
        "batch",
        "connectors",
        "cut",
        "encoding",
        "engine",
        "errors",
        "log",
        "ops",
        "partition",
        "pipeline",
        "schema",
        "window",
        "world",
    },
    "worker": {
        "assignment",
        "change",
        "checkpoint",
        "connectors",
        "credentials",
        "cut",
        "daemon",
        "dashboard",
        "engine",
        "environment",
        "errors",
        "event_loop",
        "events",
        "exchange",
        "fenced",
        "observe",
        "partition",
        "pipeline",
        "pipeline_file",
        "probes",
        "process",
        "process_settings",
        "processors",
        "repartition",
        "rpc",
        "schema",
        "settings",
        "sexp",
        "store",
        "traces",
        "validity",
        "window",
        "world",
    },
    "values": {"batch", "connectors", "encoding", "errors", "extras", "schema", "world"},
    "kafka": {
        "batch",
        "connectors",
        "cut",
        "encoding",
        "errors",
        "events",
        "extras",
        "fenced",
        "hashing",
        "keys",
        "ops",
        "partition",
        "pipeline",
        "schema",
        "settings",
        "traces",
        "values",
        "world",
    },
    "testing": {"*"},
    "spark": {
        "arguments",
        "batch",
        "causes",
        "checkpoint",
        "connectors",
        "cut",
        "engine",
        "errors",
        "events",
        "extras",
        "fenced",
        "hashing",
        "keys",
        "lazily",
        "log",
        "log_place",
        "ops",
        "partition",
        "pipeline",
        "pipeline_file",
        "store",
        "testing",
        "window",
        "world",
    },
    "flight": {
        "access",
        "daemon",
        "delta",
        "encoding",
        "errors",
        "extras",
        "keys",
        "log",
        "log_place",
        "observe",
        "observing",
        "ops",
        "probes",
        "process",
        "process_settings",
        "schema",
        "settings",
        "validity",
        "world",
    },
    "nats": {"batch", "connectors", "cut", "errors", "extras", "values", "wire", "world"},
    "postgres": {"batch", "connectors", "cut", "errors", "extras", "schema", "values"},
    "redis": {"batch", "connectors", "cut", "errors", "extras", "values", "world"},
    "websocket": {"batch", "connectors", "errors", "extras", "values", "world"},
    "cli": {"*"},
}
# Packages beside the library, each a part like those in it: none of them imports another.
PROCESSES = ("coordinator", "worker")
# Kept light for whoever only imports ripple.
SLOW_MODULES = ("pyspark", "grpc", "pyarrow.dataset", "pyarrow.parquet", "pandas", "ripple.wire")


def _part(module: str) -> str:
    first, _, rest = module.partition(".")
    return first if first in PROCESSES else rest.split(".")[0]


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


def _sources(*packages: str) -> list[Path]:
    roots = [ROOT / package for package in packages or ("ripple", *PROCESSES)]
    return sorted(p for root in roots for s in ("*.py", "*.pyx", "*.pxd") for p in root.rglob(s))


@cache
def _used() -> dict[str, dict[str, str]]:
    """Return by part which parts it imports, and one of the modules that does so."""
    used: dict[str, dict[str, str]] = {}
    for path in _sources():
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if module != "ripple.__init__":
            of_part = used.setdefault(_part(module), {})
            of_part.update((_part(imported), module) for imported in _imports(path))
            of_part.pop(_part(module), None)
    return used


def test_imports_point_one_way() -> None:
    above: set[str] = set()
    for part, allowed in MAY_IMPORT.items():
        assert allowed - {"*"} <= above, (
            f"{part} may import {allowed - above}, which is not above it"
        )
        above.add(part)
    assert _used().keys() <= above, "a part has no place in the picture of imports"


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_a_part_imports_what_the_picture_says(part: str) -> None:
    used, above = _used()[part], list(MAY_IMPORT)[: list(MAY_IMPORT).index(part)]
    allowed = set(above) if "*" in MAY_IMPORT[part] else MAY_IMPORT[part]
    assert used.keys() <= allowed, {used[other]: other for other in used.keys() - allowed}
    if "*" not in MAY_IMPORT[part]:
        assert not allowed - used.keys(), "nothing uses this arrow any more"


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
    "ripple/observe/exposition.py": ("cluster", {"prometheus_client"}),
    "ripple/observe/log.py": ("cluster", {"structlog"}),
    "ripple/observe/tracing.py": ("tracing", {"opentelemetry", "requests"}),
    "ripple/dashboard/entrance.py": ("dashboard", {"aiohttp"}),
    "ripple/dashboard/listening.py": ("dashboard", {"aiohttp"}),
    "ripple/dashboard/viewers.py": ("dashboard", {"aiohttp"}),
    "ripple/dashboard/web.py": ("dashboard", {"aiohttp"}),
    "ripple/event_loop.py": ("cluster", {"uvloop"}),
    "ripple/kafka/client.py": ("kafka", {"aiokafka"}),
    "ripple/kafka/consumer.py": ("kafka", {"aiokafka"}),
    "ripple/kafka/private.py": ("kafka", {"aiokafka"}),
    "ripple/kafka/private_connecting.py": ("kafka", {"aiokafka"}),
    "ripple/kafka/private_topics.py": ("kafka", {"aiokafka"}),
    "ripple/kafka/private_writing.py": ("kafka", {"aiokafka"}),
    "ripple/kafka/producer.py": ("kafka", {"aiokafka"}),
    "ripple/kafka/refusals.py": ("kafka", {"aiokafka"}),
    "ripple/kafka/broker.py": ("kafka", {"aiokafka"}),
    "ripple/observing/mentioned.py": ("query", {"duckdb"}),
    "ripple/observing/sql.py": ("query", {"duckdb"}),
    "ripple/values/avro.py": ("avro", {"fastavro"}),
    "ripple/values/msgpack.py": ("msgpack", {"msgspec"}),
    "ripple/values/protobuf.py": ("protobuf", {"google"}),
    "ripple/nats/inputs.py": ("nats", {"nats"}),
    "ripple/nats/liftbridge.py": ("nats", {"nats"}),
    "ripple/nats/places.py": ("nats", {"nats"}),
    "ripple/nats/session.py": ("nats", {"nats", "nkeys"}),
    "ripple/nats/sink.py": ("nats", {"nats"}),
    "ripple/nats/subject.py": ("nats", {"nats"}),
    "ripple/postgres/inputs.py": ("postgres", {"psycopg"}),
    "ripple/postgres/places.py": ("postgres", {"psycopg"}),
    "ripple/postgres/slot.py": ("postgres", {"psycopg"}),
    "ripple/postgres/stream.py": ("postgres", {"psycopg"}),
    "ripple/redis/page.py": ("redis", {"redis"}),
    "ripple/redis/session.py": ("redis", {"redis"}),
    "ripple/redis/inputs.py": ("redis", {"redis"}),
    "ripple/redis/places.py": ("redis", {"redis"}),
    "ripple/connectors/delta_lake/table.py": ("delta", {"deltalake"}),
    "ripple/connectors/postgres/record.py": ("postgres", {"psycopg"}),
    "ripple/connectors/postgres/answers.py": ("postgres", {"psycopg"}),
    "ripple/connectors/postgres/session.py": ("postgres", {"psycopg"}),
    "ripple/connectors/postgres/sink.py": ("postgres", {"psycopg"}),
    "ripple/connectors/postgres/table.py": ("postgres", {"psycopg"}),
    "ripple/connectors/postgres/places.py": ("postgres", {"psycopg"}),
    "ripple/flight/barrage/__init__.py": ("barrage", {"flatbuffers"}),
    "ripple/flight/barrage/batches.py": ("barrage", {"flatbuffers"}),
    "ripple/flight/barrage/deephaven_pb2.py": ("cluster", {"google"}),
    "ripple/flight/barrage/exchange.py": ("cluster", {"google"}),
    "ripple/flight/barrage/messages.py": ("barrage", {"flatbuffers"}),
    "ripple/flight/barrage/server.py": ("cluster", {"grpc"}),
    "ripple/flight/barrage/service.py": ("cluster", {"google"}),
    "ripple/flight/messages/__init__.py": ("cluster", {"google"}),
    "ripple/flight/messages/flight_pb2.py": ("cluster", {"google"}),
    "ripple/flight/messages/flight_sql_pb2.py": ("cluster", {"google"}),
    "ripple/flight/sql.py": ("cluster", {"google"}),
    "ripple/flight/sql_catalogue.py": ("cluster", {"google"}),
    "ripple/flight/server.py": ("cluster", {"grpc"}),
    "ripple/flight/service.py": ("cluster", {"google"}),
    "ripple/rpc/__init__.py": ("cluster", {"google"}),
    "ripple/rpc/cluster_pb2.py": ("cluster", {"google"}),
    "ripple/rpc/coordinator_pb2.py": ("cluster", {"google"}),
    "ripple/rpc/reading.py": ("cluster", {"google"}),
    "ripple/rpc/worker_pb2.py": ("cluster", {"google"}),
    "ripple/spark/backfill/backfilling.py": ("spark", {"pyspark"}),
    "ripple/spark/jvm.py": ("spark", {"pyspark"}),
    "ripple/spark/replaying.py": ("spark", {"pyspark"}),
    "ripple/spark/session.py": ("spark", {"pyspark"}),
    "ripple/spark/sources.py": ("spark", {"pyspark"}),
    "ripple/spark/streaming/running.py": ("spark", {"pyspark"}),
    "ripple/spark/streaming/source.py": ("spark", {"pyspark"}),
    "ripple/spark/validating.py": ("spark", {"pyspark"}),
    "ripple/spark/work.py": ("spark", {"pyspark"}),
    "ripple/store/s3.py": ("s3", {"aiobotocore", "botocore"}),
    "ripple/store/s3_errors.py": ("s3", {"aiohttp", "botocore"}),
    "ripple/websocket/source.py": ("websocket", {"websockets"}),
    "ripple/world/live_control.py": ("cluster", {"grpc"}),
    "ripple/world/live_control_server.py": ("cluster", {"grpc", "grpc_health", "grpc_reflection"}),
}
DISTRIBUTION_OF = {
    "aiobotocore": "aiobotocore",
    "aiohttp": "aiohttp",
    "aiokafka": "aiokafka",
    "deltalake": "deltalake",
    "duckdb": "duckdb",
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
    "structlog": "structlog",
    "pyspark": "pyspark",
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
