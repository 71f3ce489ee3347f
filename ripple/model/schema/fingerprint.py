"""Short names for schemas: equal where it matters, different where it matters.

Both hashes are 64 bits of BLAKE2b (RFC 7693, 8-byte digest) over the UTF-8 text of a schema's
S-expression without docs, written as 16 hexadecimal digits: the same in every process, on every
platform, after every round trip.

``fingerprint`` stands for the values' *meaning*. Fields and cases are sorted by name at every
depth, because names, not positions, decide which is which; the arguments of a case stay in order.

``layout_hash`` says *how positional bytes lie*: nothing is sorted. Two schemas with equal
fingerprints and different layouts hold the same values in differently ordered bytes, so bytes
are read with their writer's schema (see ``ripple.model.schema.projection``).
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from ripple.model.schema import notation
from ripple.model.schema.types import Case, Field, FieldType, List, Option, Record, Schema, Variant

# A process knows few schemas and asks for each again and again.
CACHED_MAX = 1024


@lru_cache(maxsize=CACHED_MAX)
def fingerprint(schema: Schema) -> str:
    """Return 16 hexadecimal digits that do not depend on the order of fields and cases."""
    return _digest(canonical(schema))


@lru_cache(maxsize=CACHED_MAX)
def layout_hash(schema: Schema) -> str:
    """Return 16 hexadecimal digits that differ where positional bytes do."""
    return _digest(_arranged(schema, by_name=False))


def canonical(schema: Schema) -> Schema:
    """Return ``schema`` without docs, its fields and cases sorted by name at every depth."""
    return _arranged(schema, by_name=True)


def _digest(schema: Schema) -> str:
    return hashlib.blake2b(notation.dumps(schema).encode(), digest_size=8).hexdigest()


def _arranged(schema: Schema, *, by_name: bool) -> Schema:
    return Schema(schema.name, _fields(schema.fields, by_name), schema.version)


def _fields(fields: tuple[Field, ...], by_name: bool) -> tuple[Field, ...]:
    plain = [Field(field.name, _kind(field.type, by_name), field.optional) for field in fields]
    return tuple(sorted(plain, key=lambda field: field.name) if by_name else plain)


def _cases(cases: tuple[Case, ...], by_name: bool) -> tuple[Case, ...]:
    plain = [Case(case.name, tuple(_kind(arg, by_name) for arg in case.args)) for case in cases]
    return tuple(sorted(plain, key=lambda case: case.name) if by_name else plain)


def _kind(kind: FieldType, by_name: bool) -> FieldType:
    match kind:
        case Option():
            return Option(_kind(kind.of, by_name))
        case List():
            return List(_kind(kind.of, by_name))
        case Record():
            return Record(_fields(kind.fields, by_name))
        case Variant():
            return Variant(_cases(kind.cases, by_name))
        case _:
            return kind
