"""Registries of schemas for tests."""

from __future__ import annotations

from ripple.connectors.formats.registry import Registry


def no_registry() -> Registry:
    raise AssertionError("the format needs no registry, and asks for one")
