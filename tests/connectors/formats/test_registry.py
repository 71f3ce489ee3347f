"""A registry's schemas are cached: those used last, under one lock."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

from ripple.connectors.formats import registry
from ripple.connectors.formats.registry import Registry


class Watched(OrderedDict[int, Any]):
    """What is kept, which nobody may touch without the lock: threads share it."""

    def __init__(self, kept: Registry) -> None:
        super().__init__()
        self._kept = kept

    def __getattribute__(self, name: str) -> Any:
        if name in ("get", "move_to_end", "popitem"):
            assert self._kept._lock.locked(), name
        return super().__getattribute__(name)

    def __setitem__(self, number: int, known: Any) -> None:
        assert self._kept._lock.locked()
        super().__setitem__(number, known)


def test_schemas_used_last_are_kept_and_nothing_is_asked_under_the_lock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "SCHEMAS_MAX", 2)
    one = Registry("http://nowhere.example")
    one._known = Watched(one)
    asked: list[str] = []

    def answer(_method: str, path: str, _body: object = None) -> dict[str, Any] | None:
        assert not one._lock.locked(), "who knows theirs would wait for the server"
        asked.append(path.rpartition("/")[2])
        return None if path.endswith("/404") else {"schema": '"string"'}

    monkeypatch.setattr(one, "_ask", answer)
    for number in (1, 2, 1, 3, 1, 2):
        found = one.schema(number)
        assert found is not None
        assert found.id == number
    assert asked == ["1", "2", "3", "2"]  # 3 took the place of 2, and 2 that of 3
    assert one.schema(404) is one.schema(404) is None
    assert asked[4:] == ["404", "404"]
    assert len(one._known) == 2
