"""Registries of schemas for tests."""

from __future__ import annotations

from ripple.connectors.formats.registry import Registered, Registry


def no_registry() -> Registry:
    raise AssertionError("the format needs no registry, and asks for one")


class OneSchema:
    """A registry with one schema, as number 7."""

    url = "http://registry"
    text = ""

    def register(self, _subject: str, _form: str, text: str) -> int:
        self.text = text
        return 7

    def schema(self, _number: int) -> Registered:
        return Registered(7, "AVRO", self.text)
