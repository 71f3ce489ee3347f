"""The forms of texts that a field may declare, of types with only one."""

from __future__ import annotations

from ripple.core.arguments import shown
from ripple.core.errors import SchemaError


def need_no_form(word: str, form: str | None, zone: str | None) -> None:
    """Raise SchemaError for a format or a zone. word: of the message, the type."""
    for name, given in (("format", form), ("zone", zone)):
        if given is not None:
            raise SchemaError(f"{name} is {shown(given)}, and {word} has none: leave it out")
