"""The fields of a record class, made with any library."""

from __future__ import annotations

import builtins
import dataclasses
import inspect
import sys
import types
import typing
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from ripple.core.errors import SchemaError
from ripple.core.frozen import frozen
from ripple.model.records.record import CHECKS, record_info, snake_case
from ripple.model.schema.types import FieldType

if TYPE_CHECKING:
    from collections.abc import Mapping

Annotation: TypeAlias = Any  # typing's own forms have no common type

_ANNOTATED: Any = type(Annotated[int, ""])


@frozen
class Member:
    """One field as its class declares it. default_other: whether it has a default, not None."""

    name: str
    annotation: Annotation
    default_none: bool
    doc: str | None
    default_other: bool


def members_of(cls: type) -> list[Member]:
    """Return the fields of a record class in their order.

    Raises SchemaError for a type name that cannot be resolved.
    """
    if is_struct(cls):
        return _struct_members(cls)
    if model_fields_of(cls) is not None:
        return _model_members(cls)
    members = []
    owners = {name: base for base in cls.__mro__[::-1] for name in inspect.get_annotations(base)}
    for field in dataclasses.fields(cls):
        annotation = _resolved(cls, owners[field.name], field.name)
        if CHECKS in field.metadata:
            annotation = Annotated[annotation, field.metadata[CHECKS]]
        members.append(_member(field.name, annotation, field, dataclasses.MISSING))
    return members


def _member(
    name: str, annotation: Annotation, declared: Any, nothing: object, doc: str | None = None
) -> Member:
    """Return a field; ``nothing`` is its library's marker for a field without default."""
    for extra in unwrap(annotation)[1]:
        text = extra if isinstance(extra, str) else getattr(extra, "description", None)
        doc = doc or (text if isinstance(text, str) else None)
    default_none = declared.default is None
    is_made = declared.default_factory not in (nothing, None)
    is_given = not default_none and declared.default is not nothing
    return Member(name, annotation, default_none, doc, is_made or is_given)


def _resolved(cls: type, owner: Any, name: str) -> Annotation:
    module = sys.modules.get(owner.__module__)
    # A class inside a function may still mention itself.
    names, itself = vars(module) if module else {}, {owner.__name__: owner}
    annotation = owner.__annotations__[name]
    found = _class_named(annotation, names, itself)
    if found is not None:
        return found
    single = types.SimpleNamespace(__annotations__={name: annotation})
    try:
        hints = typing.get_type_hints(single, globalns=names, localns=itself, include_extras=True)
    except Exception as error:  # any error of evaluating a text as a type
        raise SchemaError(
            f"{cls.__name__}.{name}: the type {annotation!r} cannot be resolved ({error}): define "
            f"what it mentions at the top level of {owner.__module__}"
        ) from error
    return hints[name]


def _class_named(annotation: Annotation, names: dict[str, Any], itself: dict[str, Any]) -> Any:
    """Return the class that a name is, also an annotated one, or None.

    ``typing`` would return it as it is, too, after compiling its text.
    """
    if isinstance(annotation, str):
        first, *rest = annotation.split(".")
        found = itself.get(first, names.get(first, getattr(builtins, first, None)))
        for part in rest:
            found = vars(found).get(part) if isinstance(found, types.ModuleType) else None
    else:
        found = annotation
    below = found.__origin__ if isinstance(found, _ANNOTATED) else found
    return found if type(below) is type and below.__module__ != "typing" else None


def _struct_members(cls: type) -> list[Member]:
    structs = sys.modules["msgspec.structs"]
    try:
        fields = structs.fields(cls)
    except NameError as error:
        annotations = {
            **{
                k: v
                for base in cls.__mro__
                for k, v in vars(base).get("__annotations__", {}).items()
            }
        }
        mentions = [name for name, text in annotations.items() if str(error.name) in str(text)]
        raise SchemaError(
            f"{cls.__name__}.{mentions[0] if mentions else '?'}: {error}: define it at the top "
            f"level of {cls.__module__}"
        ) from error
    nothing = sys.modules["msgspec"].NODEFAULT
    return [_member(field.name, field.type, field, nothing) for field in fields]


def model_fields_of(cls: Any) -> Mapping[str, Any] | None:
    """Return pydantic's fields of a model or of its own dataclass, or None."""
    return getattr(cls, "__pydantic_fields__", None) if "pydantic" in sys.modules else None


def _model_members(cls: Any) -> list[Member]:
    if not cls.__pydantic_complete__:
        if is_model(cls):
            cls.model_rebuild(raise_errors=False)
        else:
            sys.modules["pydantic.dataclasses"].rebuild_dataclass(cls, raise_errors=False)
    members = []
    for name, info in (model_fields_of(cls) or {}).items():
        annotation = info.annotation
        if isinstance(annotation, str | typing.ForwardRef):
            raise SchemaError(f"{cls.__name__}.{name}: the type {annotation!r} cannot be resolved")
        for extra in info.metadata:
            annotation = Annotated[annotation, extra]
        nothing = sys.modules["pydantic_core"].PydanticUndefined
        members.append(_member(name, annotation, info, nothing, info.description))
    return members


def inner_class_of(cls: type, name: str) -> type | None:
    """Return the record class of a field, also of an optional one, or None."""
    try:
        found = [one.annotation for one in members_of(cls) if one.name == name]
    except SchemaError:  # the schema will say so
        return None
    return record_class_in(found[0]) if found else None


def record_class_in(annotation: Annotation) -> type | None:
    """Return the record class that a type is, if need be without None, or None."""
    base, extras = unwrap(annotation)
    if any(isinstance(extra, FieldType) for extra in extras):
        return None  # said to be of another type
    origin: Annotation = typing.get_origin(base)
    if origin in (typing.Union, types.UnionType):
        members = [one for one in typing.get_args(base) if one is not types.NoneType]
        return record_class_in(members[0]) if len(members) == 1 else None
    return base if is_record_class(base) else None


def field_names(cls: Any) -> tuple[str, ...]:
    """Return the names of the fields of a record class."""
    if is_struct(cls):
        return tuple(cls.__struct_fields__)
    if is_model(cls):
        return tuple(cls.model_fields)
    return tuple(field.name for field in dataclasses.fields(cls))


def is_record_class(cls: Annotation) -> bool:
    """Tell whether a class has fields that a schema can be derived from."""
    return isinstance(cls, type) and (
        dataclasses.is_dataclass(cls) or is_struct(cls) or is_model(cls)
    )


def is_struct(cls: type) -> bool:
    """Tell whether a class is a struct of msgspec."""
    # Without an import of the library there is no class of it.
    msgspec = sys.modules.get("msgspec")
    return msgspec is not None and issubclass(cls, msgspec.Struct)


def is_model(cls: type) -> bool:
    """Tell whether a class is a model of pydantic."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(cls, pydantic.BaseModel)


def schema_name_of(cls: type) -> str:
    """Return the name that the schema of a record class has."""
    info = record_info(cls)
    return info.name if info else snake_case(cls.__name__)


def docstring_of(cls: type) -> str | None:
    """Return a class's own docstring, on one line."""
    text = cls.__dict__.get("__doc__")
    # The one that a dataclass invents repeats its signature.
    if not text or text.startswith(f"{cls.__name__}("):
        return None
    return " ".join(text.split())


def unwrap(annotation: Annotation) -> tuple[Annotation, tuple[Any, ...]]:
    """Return the type below ``Annotated``, ``NewType`` and aliases, and its annotations."""
    extras: tuple[Any, ...] = ()
    while True:
        if hasattr(annotation, "__metadata__"):
            annotation, extras = annotation.__origin__, (*extras, *annotation.__metadata__)
        elif isinstance(annotation, typing.NewType):
            annotation = annotation.__supertype__
        elif hasattr(typing, "TypeAliasType") and isinstance(annotation, typing.TypeAliasType):
            annotation = annotation.__value__
        else:
            return annotation, extras
