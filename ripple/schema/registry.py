"""Known schemas by subject, and the rule by which each subject may change.

A registry is a value: registering returns a new one. ``ripple.registry_file`` keeps one on disk.

A subject's modes are those of Confluent's Schema Registry: the new schema is checked against the
latest one, or with ``*_TRANSITIVE`` against every one. Two rules hold besides: versions never go
down, and without a higher version a change must be fully compatible (``NONE`` switches both the
check and this second rule off).
"""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ripple import sexp
from ripple.errors import LimitError, SchemaError
from ripple.schema import notation
from ripple.schema.compat import (
    Compatibility,
    Compatible,
    Incompatible,
    check_backward,
    check_forward,
    check_full,
)
from ripple.schema.fingerprint import fingerprint
from ripple.sexp import SexpError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.schema.types import Schema

FORMAT = "ripple schema registry 1"
DOCUMENT_BYTES_MAX = 16 << 20
SCHEMAS_MAX = 10_000

Check: TypeAlias = "Callable[[Schema, Schema], Compatibility]"


class Mode(enum.Enum):
    """How a subject may change."""

    NONE = "none"
    BACKWARD = "backward"
    BACKWARD_TRANSITIVE = "backward transitive"
    FORWARD = "forward"
    FORWARD_TRANSITIVE = "forward transitive"
    FULL = "full"
    FULL_TRANSITIVE = "full transitive"


def _unchecked(_old: Schema, _new: Schema) -> Compatibility:
    return Compatible()


def _backward(old: Schema, new: Schema) -> Compatibility:
    return check_backward(reader=new, writer=old)


def _forward(old: Schema, new: Schema) -> Compatibility:
    return check_forward(reader=old, writer=new)


# (check of an old schema against the new one, against every old schema instead of the latest)
_RULES: dict[Mode, tuple[Check, bool]] = {
    Mode.NONE: (_unchecked, False),
    Mode.BACKWARD: (_backward, False),
    Mode.BACKWARD_TRANSITIVE: (_backward, True),
    Mode.FORWARD: (_forward, False),
    Mode.FORWARD_TRANSITIVE: (_forward, True),
    Mode.FULL: (check_full, False),
    Mode.FULL_TRANSITIVE: (check_full, True),
}


class RegistryError(SchemaError):
    """A registry document or file cannot be used; the message says what to do."""


class IncompatibleSchemaError(SchemaError):
    """A schema may not be registered; ``verdict`` has every difference."""

    def __init__(self, message: str, verdict: Incompatible) -> None:
        reasons = "; ".join(str(difference) for difference in verdict.differences)
        super().__init__(f"{message}: {reasons}")
        self.verdict = verdict


@dataclass(frozen=True, slots=True)
class Subject:
    """The schemas of one subject, oldest first, their versions never going down."""

    mode: Mode
    schemas: tuple[Schema, ...] = ()


@dataclass(frozen=True, slots=True)
class Registry:
    """Subjects by name; a subject that is new starts with ``mode``."""

    mode: Mode = Mode.BACKWARD
    subjects: Mapping[str, Subject] = field(default_factory=dict)

    def subject(self, name: str) -> Subject:
        """Return a subject, one without schemas if the name is new."""
        return self.subjects.get(name) or Subject(self.mode)

    def with_mode(self, name: str, mode: Mode) -> Registry:
        """Return the registry in which a subject changes by ``mode`` from now on."""
        return self._with(name, replace(self.subject(name), mode=mode))

    def register(self, schema: Schema, subject: str | None = None) -> Registry:
        """Return the registry with ``schema`` as its subject's latest (default: its name's).

        A schema that the subject already has changes nothing. Raises
        :class:`IncompatibleSchemaError` if the subject's mode forbids the change,
        :class:`ripple.errors.SchemaError` if the version went down, and
        :class:`ripple.errors.LimitError` beyond ``SCHEMAS_MAX`` schemas.
        """
        name = subject or schema.name
        known = self.subject(name)
        if schema in known.schemas:
            return self
        if sum(len(each.schemas) for each in self.subjects.values()) >= SCHEMAS_MAX:
            raise LimitError(f"the registry holds {SCHEMAS_MAX} schemas (SCHEMAS_MAX)")
        if known.schemas:
            _admit(name, known, schema)
        return self._with(name, replace(known, schemas=(*known.schemas, schema)))

    def latest(self, subject: str) -> Schema | None:
        """Return the latest schema of a subject, None if it has none."""
        schemas = self.subject(subject).schemas
        return schemas[-1] if schemas else None

    def by_fingerprint(self, digits: str) -> tuple[Schema, ...]:
        """Return the schemas of a fingerprint; they differ in order and docs at most."""
        return tuple(
            schema
            for subject in self.subjects.values()
            for schema in subject.schemas
            if fingerprint(schema) == digits
        )

    def _with(self, name: str, subject: Subject) -> Registry:
        return replace(self, subjects={**self.subjects, name: subject})


def _admit(name: str, known: Subject, schema: Schema) -> None:
    latest = known.schemas[-1]
    if schema.version < latest.version:
        raise SchemaError(
            f"subject {name}: version {schema.version} comes after {latest.version}: "
            "versions never go down"
        )
    check, every = _RULES[known.mode]
    rule = f"mode {known.mode.value}"
    if schema.version == latest.version and known.mode is not Mode.NONE:
        check, rule = check_full, "an unchanged version"
    for old in known.schemas if every else (latest,):
        verdict = check(old, schema)
        if isinstance(verdict, Incompatible):
            raise IncompatibleSchemaError(
                f"subject {name}: {rule} does not allow v{schema.version} after v{old.version}",
                verdict,
            )


# Text --------------------------------------------------------------------------------------------


def listing(registry: Registry, *, verbose: bool = False) -> str:
    """Return the table that ``inspect schemas`` prints; ``verbose`` adds the fields."""
    schemas = [
        schema for name in sorted(registry.subjects) for schema in registry.subjects[name].schemas
    ]
    titles = [f"{sexp.dumps(schema.name)}/v{schema.version}" for schema in schemas]
    width = max(map(len, titles), default=0)
    blocks = [
        f"  {title:<{width}}  fp={fingerprint(schema)}  fields={len(schema.fields)}\n"
        + (_field_lines(schema) if verbose else "")
        for title, schema in zip(titles, schemas, strict=True)
    ]
    return "Registered Schemas\n" + "-" * 52 + "\n" + ("\n" if verbose else "").join(blocks)


def _field_lines(schema: Schema) -> str:
    rows = [
        (
            sexp.dumps(member.name),
            sexp.dumps(notation.type_to_sexp(member.type)),
            "optional" if member.optional else "required",
        )
        for member in schema.fields
    ]
    name_width = max(12, *(len(name) for name, _, _ in rows))
    # One long type should not push the others out of sight.
    type_width = max(8, *(len(kind) for _, kind, _ in rows if len(kind) <= 24), 0)
    return "".join(
        f"    {name:<{name_width}}  : {kind:<{type_width}}  ({presence})\n"
        for name, kind, presence in rows
    )


def dumps(registry: Registry) -> str:
    """Return the registry as a JSON document with a checksum."""
    body = {
        "mode": registry.mode.name,
        "subjects": {
            name: {
                "mode": subject.mode.name,
                "schemas": [notation.dumps(schema) for schema in subject.schemas],
            }
            for name, subject in registry.subjects.items()
        },
    }
    document = {"format": FORMAT, "checksum": _checksum(body), "registry": body}
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def loads(text: str) -> Registry:
    """Read what :func:`dumps` wrote; raises :class:`RegistryError` for anything else."""
    if len(text) > DOCUMENT_BYTES_MAX:
        raise RegistryError(
            f"the registry is longer than {DOCUMENT_BYTES_MAX} (DOCUMENT_BYTES_MAX)"
        )
    try:
        document = json.loads(text)
        if document["format"] != FORMAT:
            raise RegistryError(f"the format is {document['format']!r}, expected {FORMAT!r}")
        if document["checksum"] != _checksum(document["registry"]):
            raise RegistryError("the checksum does not match the contents")
        return _registry(document["registry"])
    except RegistryError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RegistryError(f"not a schema registry: {type(error).__name__} {error}") from error
    except (SchemaError, SexpError) as error:
        raise RegistryError(f"a schema in the registry is malformed: {error}") from error


def _registry(body: dict[str, Any]) -> Registry:
    subjects = {
        name: Subject(
            Mode[subject["mode"]], tuple(notation.loads(text) for text in subject["schemas"])
        )
        for name, subject in body["subjects"].items()
    }
    return Registry(Mode[body["mode"]], subjects)


def _checksum(body: object) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
