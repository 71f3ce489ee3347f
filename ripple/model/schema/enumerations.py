"""Enumerations, which are texts in records."""

from __future__ import annotations

from ripple.model.schema.types import FieldType, Variant, bare_type


def instead_of_enumeration(name: str, kind: FieldType) -> str:
    """Return what a field is declared as in place of an enumeration; "" for other types."""
    bare = bare_type(kind)
    if not isinstance(bare, Variant) or any(case.args for case in bare.cases):
        return ""
    cases = ", ".join(case.name for case in bare.cases)
    return (
        f"field {name!r} is an enumeration ({cases}): declare it as str, which takes the members "
        f"of a StrEnum, too, and leave other texts out with .filter('known', "
        f"rp.col({name!r}).is_in([...]))"
    )
