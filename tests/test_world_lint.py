"""Nothing goes round the world's ports, and no result depends on hashes, addresses or set order."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.world.bypass import bypasses

ROOT = Path(__file__).resolve().parent.parent

# Where the outside begins: what a file or folder may use, and why. What is no longer used must go.
ALLOWED: dict[str, tuple[str, tuple[str, ...]]] = {
    "ripple/world/live_disk.py": ("the live disk itself", ("os.*", "fcntl", "pathlib.Path")),
    "ripple/world/live_watch.py": ("the live watch itself", ("os.*",)),
    "ripple/world/permissions.py": ("of the files of the live disk and of people", ("os.*",)),
    "ripple/world/live.py": (
        "the live clocks and chance themselves",
        ("time", "secrets"),
    ),
    "ripple/world/live_threads.py": ("the live threads themselves", ("concurrent.futures",)),
    "ripple/world/live_network.py": (
        "the live network itself",
        ("asyncio.open_connection", "ssl"),
    ),
    "ripple/world/live_listening.py": ("the live listeners themselves", ("socket",)),
    "ripple/world/live_control_door.py": (
        "where gRPC listens for its door alone",
        ("os.unlink", "socket", "tempfile"),
    ),
    "ripple/world/live_control_server.py": (
        "tells gRPC how much to say",
        ("os.environ.setdefault",),
    ),
    "ripple/world/live_tls.py": ("the live certificates themselves", ("ssl", "os.stat", "open")),
    "ripple/cli/": (
        "a command owns its process: its streams and signals, its user's file, and the time that "
        "it took",
        ("os.*", "open", "signal", "subprocess", "time", "pathlib.Path"),
    ),
    "ripple/client/live/table.py": (
        "shows rows while somebody looks: no result depends on when",
        ("threading", "time"),
    ),
    "ripple/client/live/widget.py": ("hands its page to anywidget", ("pathlib.Path",)),
    "ripple/task/progress.py": (
        "shows people the progress of a run: no result depends on when",
        ("os.write", "time"),
    ),
    "ripple/cli/lib/silence.py": ("knows what networks raise", ("socket", "ssl")),
    "ripple/storage/store/s3_errors.py": ("knows what certificates raise", ("ssl",)),
    "ripple/client/sql/query.py": ("interrupts a question that takes too long", ("threading",)),
    "ripple/cli/spark/session.py": ("gives jobs up when a signal comes", ("threading",)),
    "ripple/cli/spark/watch.py": ("shows metrics while Spark is waited for", ("threading",)),
    "ripple/cli/cluster/deploy.py": ("removes a generation that is over", ("shutil",)),
    "ripple/cli/cluster/starting/plan.py": ("looks which ports are free", ("socket",)),
    "ripple/client/dashboard/assets.py": (
        "a command, and a step of the build, that gets files with npm",
        ("subprocess", "shutil", "tempfile", "pathlib.Path"),
    ),
    "ripple/client/sql/isolated.py": ("asks how much memory this process has", ("open",)),
    "ripple/client/outputs/subprocesses.py": (
        "starts processes, which find the modules that we have found",
        ("os.environ", "os.pathsep.join"),
    ),
    "ripple/control/process_settings.py": (
        "the file of roles is a setting, and says whose it is",
        ("os.stat", "open"),
    ),
    "ripple/control/reread.py": ("files of settings that may be replaced", ("os.stat",)),
    "ripple/control/process.py": (
        "a process owns its streams, its limits, the lines that it says, and its end",
        ("os.*", "open", "select", "threading", "time"),
    ),
    "ripple/control/daemon.py": (
        "a process owns its environment, its signals and its file of settings",
        ("os.*", "open", "signal"),
    ),
    "worker/pipe.py": ("names the signal by which a child says where it is", ("signal",)),
    "worker/engine/child.py": (
        "a process owns its signals, its log and its pipe, and measures its own load",
        ("signal", "socket", "time"),
    ),
    "worker/supervisor/spawning.py": (
        "starts and ends processes, with a pipe to each",
        ("os.*", "signal", "socket"),
    ),
    "worker/host/child.py": ("starts and ends processes", ("signal",)),
    "worker/host/host.py": ("looks whether a folder of its machine is there", ("os.*",)),
    "ripple/control/telemetry/memory.py": ("asks how much memory this process has", ("os.*",)),
    "ripple/control/secrets.py": (
        "knows the secrets of this process's environment, to hide them",
        ("os.environ",),
    ),
    "ripple/control/telemetry/process_log.py": (
        "knows the secrets of this process's environment, to hide them",
        ("os.environ",),
    ),
    "ripple/world/processors.py": ("asks how many there are", ("os.*",)),
    "ripple/connectors/raw_input.py": (
        "raw bytes from files, pipes and standard input, in whatever order they arrive",
        ("os.*", "select"),
    ),
    "ripple/connectors/target.py": (
        "raw bytes to files, pipes and standard output; a file appears whole or not at all",
        ("os.*",),
    ),
    "ripple/task/task.py": ("names its process, for people", ("os.getpid", "os.uname")),
    "ripple/connectors/locate.py": ("tells a source's name from a file's", ("os.path.exists",)),
    "ripple/connectors/registry.py": (
        "tells files from folders, pipes and devices",
        ("os.stat",),
    ),
    "ripple/connectors/log/connector.py": ("tells a log from other folders", ("os.path.exists",)),
    "ripple/connectors/files/csv/dialect.py": (
        "tells options from a file's name",
        ("os.path.lexists",),
    ),
    "ripple/connectors/files/folder/listing.py": (
        "lists files, and sorts them",
        (
            *("glob", "os.scandir", "os.path.exists", "os.path.lexists", "os.path.isdir"),
            *("os.path.realpath", "os.path.relpath"),
        ),
    ),
    "ripple/connectors/files/version.py": (
        "asks how long files are, and when they were written",
        ("os.stat",),
    ),
    "ripple/connectors/live_inputs.py": (
        "closes an iterator once the thread that reads it is out of it",
        ("threading",),
    ),
    "ripple/connectors/files/remote/attempts.py": (
        "waits for a server that is away, in the thread that reads",
        ("time",),
    ),
    "ripple/connectors/files/remote/contract.py": (
        "credentials of servers come from the environment",
        ("os.environ.items",),
    ),
    "ripple/connectors/files/remote/s3.py": (
        "settings come from the environment; several threads may open one client",
        ("os.environ", "threading"),
    ),
    "ripple/connectors/files/remote/address.py": ("tells a pattern from a name", ("glob",)),
    "ripple/connectors/files/remote/web.py": ("the certificates of the system", ("ssl",)),
    "ripple/connectors/files/parquet/discovery.py": (
        "asks whether a file can be read",
        ("os.stat",),
    ),
    "ripple/connectors/tables/events.py": (
        "holds the events of a commit, which may be many, in a file without a name",
        ("tempfile",),
    ),
    "ripple/connectors/prefetch.py": (
        "reads ahead in a thread; batches arrive in the same order with and without it",
        ("threading",),
    ),
    "ripple/connectors/server_uri.py": (
        "settings of connectors come from the environment",
        ("os.environ",),
    ),
    "ripple/connectors/transforms/opening.py": ("reads the file that it names", ("pathlib.Path",)),
    "ripple/connectors/websocket/source.py": (
        "waits for a server that is away, in a thread where nothing else is done; certificates",
        ("time", "ssl"),
    ),
    "ripple/connectors/websocket/tls.py": (
        "a socket that two threads of the client share",
        ("select", "ssl", "threading"),
    ),
    "ripple/connectors/client_tls.py": ("certificates of a server", ("ssl",)),
    "ripple/connectors/postgres/uri.py": (
        "knows the variables in which PostgreSQL's programs look for a server",
        ("os.environ", "os.environ.get"),
    ),
    "ripple/connectors/postgres/answers.py": (
        "a server that says nothing is left after a time",
        ("time",),
    ),
    "ripple/connectors/postgres/sink.py": (
        "waits for a server that is away, in a thread where nothing else is done",
        ("time",),
    ),
    "ripple/connectors/kafka/settings.py": (
        "passwords and certificates come from the environment and files, before there is a world",
        ("os.environ", "pathlib.Path", "ssl"),
    ),
    "ripple/connectors/formats/protobuf.py": (
        "what messages look like is in a file, before there is a world",
        ("open",),
    ),
    "ripple/connectors/handover.py": (
        "an iterator is read in a thread of its own",
        ("threading",),
    ),
    "ripple/task/beside_a_loop.py": ("a run is in a thread of its own", ("threading",)),
    "ripple/connectors/background.py": (
        "sinks and places are opened outside of an event loop, and aiokafka needs one",
        ("threading",),
    ),
    "ripple/connectors/kafka/sink_opening.py": ("followers look in threads", ("threading",)),
    "ripple/connectors/kafka/tokens.py": (
        "gets tokens for connections, which are aiokafka's, in a thread",
        ("urllib.request", "time", "pathlib.Path", "threading"),
    ),
    "ripple/connectors/formats/registry.py": (
        "asks a registry of schemas from wherever values are decoded, which is in a thread",
        ("urllib.request", "time", "threading"),
    ),
    "ripple/world/http.py": (
        "asks by HTTP for those two, in their threads, and breaks off what takes too long",
        ("http.client", "socket", "threading", "urllib.request"),
    ),
    "ripple/connectors/stream_channel.py": (
        "takes rows of other threads, and tells a forked process from its parent",
        ("threading", "os.getpid"),
    ),
    "ripple/task/loop_items.py": (
        "waits in a run's thread for what an event loop does",
        ("concurrent.futures",),
    ),
    "ripple/storage/store/cached.py": ("threads write its folder, one at a time", ("threading",)),
    "ripple/connectors/identity.py": (
        "tells whether two paths are one file or folder",
        ("os.path.realpath", "os.stat", "os.fstat", "os.path.isdir"),
    ),
    "worker/process.py": ("the same of lanes", ("os.path.realpath",)),
    "worker/uris.py": (
        "the same of a cache",
        ("os.path.realpath", "os.path.commonpath"),
    ),
    "ripple/model/pipeline/file.py": ("imports the user's file", ("os.*", "pathlib.Path")),
    "ripple/spark/backfill/fingerprint.py": ("knows files by size and time", ("pathlib.Path",)),
    "ripple/spark/crashes.py": ("chance from a seed", ("random",)),
    "ripple/spark/draft.py": (
        "a folder of the user's, in the making beside its place",
        ("os.*", "open", "secrets", "shutil"),
    ),
    "ripple/spark/dataframe/places.py": ("gives tasks a path from the root", ("os.path.abspath",)),
    "ripple/spark/driver.py": ("tasks tell the driver in datagrams", ("socket",)),
    "ripple/spark/environment.py": ("looks for Java", ("os.*", "shutil")),
    "ripple/spark/file_states.py": ("knows files by size and time", ("os.stat",)),
    "ripple/spark/jvm.py": (
        "what a JVM says goes through a pipe and a thread",
        ("os.*", "open", "threading"),
    ),
    "ripple/spark/options.py": ("makes places that tasks elsewhere have", ("os.*",)),
    "ripple/spark/parcel.py": (
        "carries the user's file to executors",
        ("os.*", "pathlib.Path", "tempfile"),
    ),
    "ripple/spark/progress.py": (
        "shows people how far tasks are; no result depends on it",
        ("secrets", "threading", "time"),
    ),
    "ripple/spark/session.py": (
        "starts a JVM, which reads the environment",
        ("os.*", "pathlib.Path"),
    ),
    "ripple/spark/shares.py": ("lists the user's files", ("os.*", "glob")),
    "ripple/spark/streaming/calls.py": (
        "tasks find each other; whom they find changes no result",
        ("secrets", "socket"),
    ),
    "ripple/spark/streaming/hints.py": (
        "tells the driver likewise, and draws the token of a query",
        ("secrets", "threading"),
    ),
    "ripple/spark/streaming/resident.py": ("an event loop beside Spark's thread", ("threading",)),
    "ripple/spark/table_check.py": ("names a file that is not there", ("os.path.exists",)),
    "ripple/storage/store/opening.py": (
        "looks whether a folder is there; settings of S3 are the environment's",
        ("os.environ", "pathlib.Path"),
    ),
    "ripple/testing/sim/chance.py": ("chance from a seed", ("random",)),
    "ripple/testing/sim/jobs.py": ("spreads seeds over processes", ("multiprocessing",)),
    "ripple/testing/connectors/outside.py": (
        "looks for files and threads that a connector has left, and kills a process of its own",
        ("os.*", "signal", "threading", "time"),
    ),
    "ripple/testing/__main__.py": ("a command that says how fast it was", ("time",)),
    # Sets whose order does not matter, where the check cannot see it.
    "ripple/storage/checkpoint/seal.py": ("takes the only element", ("set order",)),
    "ripple/testing/reference/aggregates.py": ("takes the only element", ("set order",)),
    "ripple/testing/reference/interpreter.py": ("drops every element from a dict", ("set order",)),
    "ripple/engine/graph/invariants.py": ("asserts the same of every element", ("set order",)),
}


@cache
def found() -> dict[str, list[tuple[int, str]]]:
    """Return every bypass of the library and of the processes, by file."""
    by_file = {}
    packages = ("coordinator", "ripple", "worker")
    for path in sorted(p for package in packages for p in (ROOT / package).rglob("*.py*")):
        if path.suffix in (".py", ".pyx", ".pxd"):
            name = path.relative_to(ROOT).as_posix()
            places = bypasses(path.read_text(), compiled=path.suffix != ".py")
            by_file[name] = [(place.line, place.what) for place in places]
    return by_file


def allowance(name: str) -> tuple[str, ...]:
    """Return what a file may use."""
    return tuple(
        what
        for place, (_, uses) in ALLOWED.items()
        if name == place or (place.endswith("/") and name.startswith(place))
        for what in uses
    )


def covers(allowed: str, what: str) -> bool:
    """Return whether an allowance covers a use: ``os.*`` covers ``os.open``."""
    return what == allowed or (allowed.endswith(".*") and what.startswith(allowed[:-1]))


def test_library_touches_the_outside_through_ports_only() -> None:
    wrong = [
        f"{name}:{line} {what}: use a port of ripple.world, or sort"
        for name, places in found().items()
        for line, what in places
        if not any(covers(allowed, what) for allowed in allowance(name))
    ]
    assert not wrong, "\n".join(wrong)


def test_every_allowance_is_needed() -> None:
    by_file = found()
    for place, (reason, uses) in ALLOWED.items():
        assert reason
        for allowed in uses:
            assert any(
                covers(allowed, what)
                for name, places in by_file.items()
                if name == place or (place.endswith("/") and name.startswith(place))
                for _, what in places
            ), f"{place} no longer uses {allowed}"


PLANTED = [
    ("import time\ntime.time()", "time"),
    ("from time import monotonic", "time"),
    ("import time as clock", "time"),
    ("import random", "random"),
    ("def f():\n    from uuid import uuid4\n    return uuid4()", "uuid.uuid4"),
    ("import uuid\nuuid.uuid1()", "uuid.uuid1"),
    ("import secrets", "secrets"),
    ("import socket", "socket"),
    ("import threading", "threading"),
    ("from concurrent.futures import ThreadPoolExecutor", "concurrent.futures"),
    ("import concurrent.futures as futures", "concurrent.futures"),
    ("import datetime as dt\ndt.datetime.now(dt.UTC)", "datetime.datetime.now"),
    ("from datetime import datetime\ndatetime.utcnow()", "datetime.datetime.utcnow"),
    ("from datetime import date as day\nday.today()", "datetime.date.today"),
    ("import os\nos.urandom(4)", "os.urandom"),
    ("from os import urandom", "os.urandom"),
    ("import os as system\nsystem.open('a', 0)", "os.open"),
    ("import os\nos.environ['A']", "os.environ"),
    ("import os\nos.path.exists('a')", "os.path.exists"),
    ("with open('a') as f:\n    pass", "open"),
    ("from pathlib import Path\nPath('a').read_text()", "pathlib.Path"),
    ("import asyncio\nasyncio.open_connection('a', 1)", "asyncio.open_connection"),
    ("hash('a') % 4", "hash"),
    ("for x in {1, 2}:\n    pass", "set order"),
    ("[x for x in set(y)]", "set order"),
    ("names = {a for a in b}\nlist(names)", "set order"),
    ("def f(s: set[str]):\n    return ','.join(s)", "set order"),
    ("def f(s: frozenset[str]):\n    return [*s]", "set order"),
    (
        "class A:\n    def f(self):\n        self.s = set()\n        return tuple(self.s)",
        "set order",
    ),
    ("class A:\n    s: set[int]\n    def f(self):\n        return sum(self.s)", "set order"),
    ("for k in a.keys() - b.keys():\n    pass", "set order"),
    ("for k in set(a) | b:\n    pass", "set order"),
    ("s = set(a)\ns.pop()", "set order"),
    ("async def f():\n    s = {1}\n    for x in s:\n        pass", "set order"),
    ("def f():\n    s = {1}\n    def g():\n        return list(s)", "set order"),
    ("sorted(a, key=id)", "id order"),
    ("a.sort(key=lambda x: (1, id(x)))", "id order"),
    ("id(a) < id(b)", "id order"),
]


@pytest.mark.parametrize(("source", "what"), PLANTED)
def test_planted_bypass_is_found(source: str, what: str) -> None:
    assert [place.what for place in bypasses(source)] == [what]


INNOCENT = [
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import time",
    "import os\ndef f(p: os.PathLike[str]):\n    return os.fspath(p)",
    "world.clock.sleep(1)\nworld.disk.open('a')",
    "for x in sorted({1, 2}):\n    pass",
    "names = {a for a in b}\nany(n for n in names)\nlen(names)",
    "{x + 1 for x in {1, 2}}",
    "for k in {'a': 1}:\n    pass",
    "class A:\n    def __hash__(self):\n        return hash(self.x)",
    "seen = {id(x) for x in y}\nid(a) == id(b)",
    "d = dict.fromkeys(a)\nlist(d)",
    "def f(s: set[str]):\n    pass\ndef g(s: list[str]):\n    return list(s)",
    "def f(s: set[str]):\n    return lambda s: list(s)",
]


@pytest.mark.parametrize("source", INNOCENT)
def test_innocent_code_is_left_alone(source: str) -> None:
    assert bypasses(source) == []


def test_compiled_sources_are_read_too() -> None:
    assert [
        p.what for p in bypasses("from libc.time cimport time\nx = hash(y)", compiled=True)
    ] == [
        "libc.time",
        "hash",
    ]
    assert bypasses("# import time\ncdef int hash_of(x)", compiled=True) == []
