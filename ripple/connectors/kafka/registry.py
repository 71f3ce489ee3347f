"""The schema registry of the Kafka settings."""

from __future__ import annotations

from functools import lru_cache

from ripple.connectors.formats.registry import Registry
from ripple.connectors.kafka.settings import RegistrySecurity, registry_security


def registry_given() -> Registry:
    """Return it: one a process. Raises SettingsError."""
    return _registry(registry_security())


@lru_cache(maxsize=4)
def _registry(security: RegistrySecurity) -> Registry:
    return Registry(
        security.url,
        user=security.username,
        password=security.password,
        context=security.context(),
    )
