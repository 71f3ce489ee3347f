"""Location of repartition topics: Kafka, or logs in a folder that all workers share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.connectors.installed import load
from ripple.connectors.registry import connector_of, schemes
from ripple.core.setting import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.connectors.connector import LaneHome


def lane_home(said: str, places: Iterable[str]) -> LaneHome | None:
    """Return the home of repartition topics, None if that is a folder.

    said: a folder or ``kafka:BROKERS``; "" takes the first of the URIs whose system can hold them.
    Raises InputError, SettingsError and ConnectorError.
    """
    if not said:
        return next(filter(None, map(_home, places)), None)
    found = _home(said)
    if found is None and said.partition(":")[0] in schemes():
        raise SettingsError(
            f"lanes is {said!r}: repartition topics are in a folder that all workers share, or in "
            "kafka:BROKERS"
        )
    return found


def _home(place: str) -> LaneHome | None:
    connector = connector_of(place)
    if connector is None or not connector.lanes:
        return None
    opened = load(connector.scheme, connector.package, connector.lanes)
    home: LaneHome = opened(place.partition(":")[2])
    return home
