"""Entries of a chain that are text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Text:
    def to_fields(self, content: str) -> Mapping[str, Any]:
        return {"text": content}

    def from_fields(self, fields: Mapping[str, Any]) -> str:
        return str(fields["text"])
