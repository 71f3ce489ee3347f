"""Settings as the fields of a dataclass."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ripple.core.setting import Found, InForce, SettingsError, group, made, setting, settings_of


@dataclass(frozen=True, kw_only=True)
class Queue:
    rows: int = setting("rows that wait", default=10, name="queue_rows", least=1, most=20)
    share: float = setting("of them", default=0.5, name="queue_share", within=(0, 1))


def _peers(found: Found) -> tuple[str, ...]:
    return tuple(str(found["peer"].value).split(","))


@dataclass(frozen=True, kw_only=True)
class Settings:
    store: str = setting("where")
    peers: tuple[str, ...] = setting("others", name="peer", default="", make=_peers)
    level: str = setting("lowest", default="info", choices=("info", "warn"))
    queue: Queue = group(Queue)


def settled(**given: object) -> Settings:
    values = {one.name: one.default for one in settings_of(Settings)} | given
    return made(
        Settings, {name: InForce(one, "a test") for name, one in values.items() if one is not None}
    )


def test_a_dataclass_declares_its_settings_in_order_and_those_of_its_parts() -> None:
    names = [one.name for one in settings_of(Settings)]
    assert names == ["store", "peer", "level", "queue_rows", "queue_share"]
    assert Queue() == Queue(rows=10, share=0.5)


def test_setting_is_made_of_the_values_in_force() -> None:
    expected = Settings(store="s", peers=("a", "b"), level="warn", queue=Queue(rows=20, share=0.5))
    assert settled(store="s", peer="a,b", level="warn", queue_rows=20) == expected


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("queue_rows", 0, "queue_rows is 0, less than 1 (from a test)"),
        ("queue_rows", 21, "queue_rows is 21, more than 20 (from a test)"),
        ("queue_share", 1.5, "queue_share is 1.5, not from 0 to 1 (from a test)"),
        ("level", "loud", "level is loud, none of info, warn (from a test)"),
        ("store", None, "store is missing: give --store or RIPPLE_STORE (where)"),
    ],
)
def test_a_value_outside_its_bounds_is_named_with_its_origin(
    name: str, value: object, text: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        settled(**{"store": "s", name: value})
    assert str(caught.value) == text
