"""When a gateway may be asked: once it has heard all, and from then on unless it hears nobody."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ripple.flight.process import _State


def test_who_was_ready_stays_so_while_a_worker_is_away() -> None:
    state = _State()
    ready: Any = state.pages()["/ready"]
    assert (ready().status, ready().body) == (503, "NOT READY: no coordinator has answered yet\n")
    places = SimpleNamespace(processes={"worker-1/0": "a:1", "worker-2/0": "b:1"})
    observer: Any = SimpleNamespace(places=places, connected=frozenset({"worker-1/0"}))
    state.observer = observer
    assert (ready().status, ready().body) == (503, "NOT READY: not connected to worker-2/0\n")
    for connected, status in (
        ({"worker-1/0", "worker-2/0"}, 200),
        ({"worker-2/0"}, 200),
        (set(), 503),
        ({"worker-1/0"}, 200),
    ):
        observer.connected = frozenset(connected)
        assert ready().status == status, connected
