"""Settings of record classes for reading and writing their values: heeded or refused.

Each setting of the libraries is known here by its name: as one that a source may pass over, because
it is about making, showing, comparing or writing instances, or refuses values that a source refuses
as well; or as a setting that would give another record, which is an error when the class is read. A
setting that is not known is an error, too.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ripple.core.errors import SchemaError
from ripple.model.records.members import is_model, is_struct, members_of, model_fields_of, unwrap

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Of pydantic's ``model_config``. Names that a model gives its fields are looked at by field.
_CONFIG_PASSED_OVER = {
    *("title", "model_title_generator", "field_title_generator", "frozen", "loc_by_alias"),
    *("populate_by_name", "alias_generator", "validate_by_alias", "validate_by_name"),
    *("serialize_by_alias", "use_enum_values", "validate_assignment", "arbitrary_types_allowed"),
    *("from_attributes", "ignored_types", "json_schema_extra", "json_encoders", "strict"),
    *("revalidate_instances", "ser_json_timedelta", "ser_json_temporal", "val_temporal_unit"),
    *("ser_json_bytes", "val_json_bytes", "ser_json_inf_nan", "validate_default"),
    *("validate_return", "protected_namespaces", "hide_input_in_errors", "defer_build"),
    *("json_schema_serialization_defaults_required", "json_schema_mode_override"),
    *("regex_engine", "validation_error_cause", "use_attribute_docstrings", "cache_strings"),
    *("polymorphic_serialization", "url_preserve_empty_path"),
}
# Those that are heeded as long as they have this value.
_CONFIG_HEEDED: Mapping[str, tuple[Any, ...]] = {
    "str_to_lower": (False,), "str_to_upper": (False,), "str_strip_whitespace": (False,),
    "str_min_length": (0, None), "str_max_length": (None,), "allow_inf_nan": (True,),
    "extra": ("ignore", "allow", None), "coerce_numbers_to_str": (False,),
    "plugin_settings": (None,), "schema_generator": (None,),
}  # fmt: skip

_STRUCT_PASSED_OVER = {
    *("frozen", "eq", "order", "gc", "repr_omit_defaults", "omit_defaults", "weakref", "dict"),
    "cache_hash",
}
_STRUCT_HEEDED: Mapping[str, Any] = {
    "array_like": False, "forbid_unknown_fields": False, "tag": None, "tag_field": None,
}  # fmt: skip

# Libraries' field objects; a plain dataclass takes one for its default.
_FIELDS = {"FieldInfo": "pydantic", "Field": "msgspec", "_CountingAttr": "attr"}
_NAMES = {"Field": ("name",)}  # besides those called alias

# Libraries' metadata of dataclasses about a field's name or value. Other keys
# are notes: a dataclass itself reads none.
_METADATA_REFUSED = {
    *("alias", "aliases", "rename", "name", "data_key", "load_key", "field_name", "json", "key"),
    *("dataclasses_json", "letter_case", "decoder", "deserialize", "serde_rename", "serde_alias"),
    *("serde_deserializer", "load_default", "validate", "validator", "converter"),
}


def check_names(cls: type) -> None:
    """Raise SchemaError for a field that is read by another name."""
    for field, other, how in _names(cls):
        if other != field:
            raise SchemaError(
                f"{cls.__name__}.{field}: {how} reads it as {other!r}, and sources go by the name "
                f"of the field: give it the name that records have, or rename that on the way in "
                f"(rename in a file of through:)"
            )


def _names(cls: Any) -> Iterator[tuple[str, object, str]]:
    """Yield fields with the names that they are read by."""
    if is_struct(cls):
        for field, name in zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True):
            yield field, name, "name= or rename= of msgspec"
    elif (fields := model_fields_of(cls)) is None:
        for field in dataclasses.fields(cls):
            for key in sorted(_METADATA_REFUSED & field.metadata.keys()):
                yield field.name, field.metadata[key], f"metadata[{key!r}]"
        annotated = [(member.name, unwrap(member.annotation)[1]) for member in members_of(cls)]
        for name, extra in [
            *_library_fields(cls),
            *((name, x) for name, xs in annotated for x in xs),
        ]:
            for attribute in ("validation_alias", "alias", *_NAMES.get(type(extra).__name__, ())):
                yield name, getattr(extra, attribute, None) or name, "its alias"
    elif _config(cls).get("validate_by_alias") is not False:
        for field, info in fields.items():
            yield field, info.validation_alias or info.alias or field, "its alias"


def unheeded(cls: Any) -> Iterator[str]:
    """Yield the settings of a class that would refuse or change values, which no source heeds."""
    if is_struct(cls):
        yield from _of_a_struct(cls)
        return
    for name, value in _config(cls).items():
        if name not in _CONFIG_PASSED_OVER and value not in _CONFIG_HEEDED.get(name, ()):
            yield f"{name}={value!r}"
    if getattr(cls, "__pydantic_root_model__", False):
        yield "a root in place of fields (RootModel)"
    if "__get_pydantic_core_schema__" in _own_names(cls):
        yield "__get_pydantic_core_schema__()"
    if (fields := model_fields_of(cls)) is None:
        yield from _of_a_dataclass(cls)
    for name, info in (fields or {}).items():
        if info.init is False:
            yield f"{name}: init=False"


def _of_a_struct(cls: Any) -> Iterator[str]:
    config = cls.__struct_config__
    for name in (name for name in dir(config) if not name.startswith("_")):
        value = getattr(config, name)
        if name not in _STRUCT_PASSED_OVER and not (
            name in _STRUCT_HEEDED and value == _STRUCT_HEEDED[name]
        ):
            yield f"{name}={value!r}"


def _of_a_dataclass(cls: type) -> Iterator[str]:
    """Yield the settings that a library would read in a dataclass made elsewhere."""
    for name, made in _library_fields(cls):
        yield f"{name}={made!r}"
    for base in cls.__mro__:
        for name, held in vars(base).items():
            if "Validator" in type(getattr(held, "decorator_info", None)).__name__:
                yield f"{name}()"


def _library_fields(cls: Any) -> Iterator[tuple[str, Any]]:
    """Yield a library's field objects, which a plain dataclass takes for defaults."""
    for field in dataclasses.fields(cls):
        kind = type(field.default)
        if _FIELDS.get(kind.__name__) == kind.__module__.partition(".")[0]:
            yield field.name, field.default


def _config(cls: Any) -> Mapping[str, Any]:
    found = getattr(cls, "model_config", None) if is_model(cls) else None
    found = getattr(cls, "__pydantic_config__", None) if found is None else found
    return found or {}


def _own_names(cls: type) -> set[str]:
    """Return the names defined by users' own classes, without the library's."""
    own = (base for base in cls.__mro__ if not base.__module__.startswith("pydantic."))
    return {name for base in own for name in vars(base)}
