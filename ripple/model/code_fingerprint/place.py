"""The position of something in code, in the code's own words."""

from __future__ import annotations

CHARACTERS_MAX = 120  # deeper values have the place of an ancestor


def within(place: str, name: str) -> str:
    """Return the place of the attribute, or variable, ``name`` of the object at ``place``."""
    return _shortened(place, f".{name}") if place else name


def entry(place: str, key: object) -> str:
    """Return the place of the entry ``key`` of the object at ``place``."""
    return _shortened(place, f"[{key!r}]" if type(key) in (str, int) else "[...]")


def _shortened(place: str, more: str) -> str:
    return place if len(place) + len(more) > CHARACTERS_MAX else f"{place}{more}"
