"""Every place that listens is known, with the test that walks it as everybody there is."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
LISTENS = re.compile(
    r"\.listen\(|\bserve_pages\(|control\.serve\(|aio\.server\(|\bgrpc\.server\(|LiveListening\("
    r"|create_server\(|start_server\(|start_unix_server\(|HTTPServer\(|socketserver|\.Listener\("
    r"|TCPSite\(|create_datagram_endpoint\(|run_app\("
)
OPEN = "pages for everybody, which --pages-without-tls says: no record, no command"
# What listens, and what says who may do what there.
KNOWN = {
    "coordinator/process.py": ("tests/client/dashboard/test_walk.py", OPEN),
    "ripple/cli/spark/watch.py": ("tests/control/test_probes.py", OPEN),
    "ripple/client/dashboard/listening.py": ("tests/client/dashboard/test_walk.py", "roles"),
    "ripple/client/flight/process.py": ("tests/client/flight/test_ready.py", OPEN),
    "ripple/client/flight/server.py": ("tests/client/flight/barrage/test_server.py", "roles"),
    "ripple/control/probes.py": ("tests/control/test_probes.py", OPEN),
    "ripple/world/live_control_door.py": (
        "tests/world/test_live_control.py",
        "the others' connections",
    ),
    "ripple/world/live_control_server.py": ("tests/client/dashboard/test_walk.py", "roles"),
    "ripple/world/live_listening.py": ("tests/world/test_seats.py", "the others' connections"),
    "ripple/world/live_network.py": ("tests/world/test_seats.py", "the others' connections"),
    "worker/engine/exchange.py": ("tests/exchange/test_walk.py", "credentials"),
    "worker/host/host.py": ("tests/worker/test_host.py", OPEN),
    "worker/process.py": ("tests/worker/test_watch.py", OPEN),
}
# Simulated; of Spark's own network; tries whether a port is free.
ASIDE = ("ripple/testing/", "ripple/spark/", "ripple/cli/cluster/starting/plan.py")


def test_every_listener_has_a_test_of_its_access() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for room in ("ripple", "worker", "coordinator")
        for path in (ROOT / room).rglob("*.py")
        if LISTENS.search(path.read_text())
    }
    ours = {name for name in found if not name.startswith(ASIDE)}
    assert ours == KNOWN.keys(), "who may do what there? Walk it as everybody, and name the test"
    for test, _ in KNOWN.values():
        assert (ROOT / test).is_file()
