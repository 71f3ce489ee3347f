"""Checks of the URIs in a worker's settings, before anything is opened."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from ripple.connectors.locate import check_sealed
from ripple.connectors.registry import find
from ripple.core.errors import RippleError
from ripple.core.named_uris import name_and_uri
from ripple.core.setting import SettingsError
from ripple.storage.store.s3_settings import is_s3
from worker.engine.lane_home import lane_home

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ripple.core.setting import InForce


def check_places(
    found: Mapping[str, InForce], sources: Sequence[str], sinks: Sequence[str]
) -> None:
    """Reject URIs that no worker can use, with any pipeline. Raises SettingsError."""
    checks: tuple[tuple[str, Callable[[str], object]], ...] = (
        ("source", lambda _: _check_sources(sources)),
        ("sink", lambda _: _check_sinks(sinks)),
        ("lanes", lambda text: lane_home(text, [])),
    )
    for name, check in checks:
        given = found[name]
        try:
            check(str(given.value))
        except RippleError as error:
            raise SettingsError(f"{name}: {error} (from {given.origin})") from error
    _check_cache(found)


def _check_sources(sources: Sequence[str]) -> None:
    for text in sources:
        find(name_and_uri(text)[1], "continued_source")


def _check_sinks(sinks: Sequence[str]) -> None:
    pairs = [name_and_uri(text) for text in sinks]
    if not pairs:
        raise SettingsError("no URI is given")
    for _, place in pairs:
        check_sealed(place)
    for what, one in (("output", 0), ("URI", 1)):
        for name, times in Counter(pair[one] for pair in pairs).items():
            if times > 1:
                problem = (
                    f"{what} {name!r} is given" if name else "a URI without an output is given"
                )
                raise SettingsError(f"{problem} {times} times: each output has its own URI")


def _check_cache(found: Mapping[str, InForce]) -> None:
    """Reject a cache folder within other data: the cache deletes files that it does not use."""
    cache, store = str(found["cache"].value), str(found["store"].value)
    if not cache or is_s3(store):
        return
    cache, store = os.path.realpath(cache), os.path.realpath(store)
    if os.path.commonpath((cache, store)) in (cache, store):
        raise SettingsError(
            f"cache is {found['cache'].value}, which is inside the store, or contains it: give a "
            f"folder of this worker's own (from {found['cache'].origin})"
        )
