"""Each setting of the libraries that declare records is known: passed over, or refused."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import msgspec
import pydantic
import pydantic.dataclasses
import pytest

import ripple as rp
from ripple.core.errors import PlanError, SchemaError
from ripple.model.records import checks_of, declared, schema_of
from ripple.model.schema import Checks, Field, Float, String


def model(field: Any = None, **config: Any) -> type[Any]:
    given = {} if field is None else {"x": field}
    body = {"__annotations__": {"k": str, "x": float | None}, "model_config": config, **given}
    return type("Model", (pydantic.BaseModel,), body)


def struct(field: Any = None, **config: Any) -> type[Any]:
    x = ("x", float | None) if field is None else ("x", float | None, field)
    return msgspec.defstruct("Struct", [("k", str), x], **config)


def data(**metadata: Any) -> type[Any]:
    x = ("x", float | None, dataclasses.field(default=None, metadata=metadata))
    return dataclasses.make_dataclass("Data", [("k", str), x])


@dataclasses.dataclass
class Validated:
    k: str

    @pydantic.field_validator("k")
    @classmethod
    def upper(cls, text: str) -> str:
        return text.upper()


@pydantic.dataclasses.dataclass
class Schemed:
    k: str

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return handler(source)


@pydantic.dataclasses.dataclass
class Dataclass:
    k: str
    x: float | None = pydantic.Field(default=None, alias="px")


RENAMED: dict[str, Any] = {
    "px": model(pydantic.Field(default=None, alias="px")),
    "qx": model(pydantic.Field(default=None, alias="x", validation_alias="qx")),
    "a', 'b": model(pydantic.Field(default=None, validation_alias=pydantic.AliasChoices("a", "b"))),
    "also": model(pydantic.Field(default=None, alias="also"), populate_by_name=True),
    "K": model(alias_generator=str.upper),
    "ex": struct(msgspec.field(default=None, name="ex")),
    "k": struct(rename={"k": "key"}),
    "fx": data(alias="fx"),
    "serde": data(serde_rename="serde"),
    "dataclass": Dataclass,
    "annotated": dataclasses.make_dataclass(
        "Data", [("k", str), ("x", Annotated[float, pydantic.Field(alias="annotated")])]
    ),
    "struct's": dataclasses.make_dataclass(
        "Data", [("k", str), ("x", float, msgspec.field(default=1.0, name="struct's"))]
    ),
}


@pytest.mark.parametrize("name", RENAMED)
def test_a_field_that_is_read_by_another_name_is_refused_with_both(name: str) -> None:
    cls = RENAMED[name]
    other = {"k": "key", "dataclass": "px"}.get(name, name)
    with pytest.raises(PlanError, match=rf"{cls.__name__}\.[kx]: .* reads it as .*{other}"):
        rp.Pipeline("p").source("s", cls)
    for asked in (cls, dataclasses.make_dataclass("Outer", [("within", list[cls])])):
        with pytest.raises(SchemaError, match=other):
            rp.schema_of(asked)


def test_names_that_change_nothing_are_no_error() -> None:
    for cls in (
        model(pydantic.Field(default=None, alias="x", serialization_alias="out")),
        model(
            pydantic.Field(default=None, alias="px"), validate_by_alias=False, validate_by_name=True
        ),
        model(alias_generator=str),
        struct(msgspec.field(default=None, name="x"), rename="lower"),
        data(unit="USD"),
    ):
        assert [field.name for field in schema_of(cls).fields] == ["k", "x"]


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        (model(str_to_lower=True), "declares str_to_lower=True"),
        (model(extra="forbid"), "declares extra='forbid'"),
        (model(allow_inf_nan=False), "allow_inf_nan=False"),
        (model(str_max_length=3), "str_max_length=3"),
        (model(coerce_numbers_to_str=True), "coerce_numbers_to_str=True"),
        (model(of_a_later_version=True), "of_a_later_version=True"),
        (struct(array_like=True), "array_like=True"),
        (struct(forbid_unknown_fields=True), "forbid_unknown_fields=True"),
        (struct(tag="s"), "tag='s'"),
        (pydantic.RootModel[int], "a root in place of fields"),
        (dataclasses.make_dataclass("D", [("x", pydantic.Base64Str)]), "x: the type=EncodedStr"),
        (
            dataclasses.make_dataclass("D", [("x", int, pydantic.Field(gt=0))]),  # type: ignore[misc]
            r"x=FieldInfo\(",
        ),
        (Validated, r"upper\(\)"),
        (Schemed, r"__get_pydantic_core_schema__\(\)"),
        (
            dataclasses.make_dataclass(
                "D",
                [("x", Annotated[str, pydantic.GetPydanticSchema(lambda kind, made: made(kind))])],
            ),
            "x: the type=GetPydanticSchema",
        ),
    ],
)
def test_a_setting_that_would_give_other_records_is_refused_by_its_name(
    cls: type, message: str
) -> None:
    with pytest.raises(SchemaError, match=f"{message}.*, which sources cannot"):
        rp.Pipeline("p").source("s", cls)
    rp.Pipeline("p").source("s", schema_of(cls))


@pytest.mark.parametrize(
    "cls",
    [
        model(5.0),
        model(pydantic.Field(default_factory=float)),
        struct(5.0),
        struct(msgspec.field(default_factory=float)),
        dataclasses.make_dataclass("D", [("x", float | None, 5.0)]),  # type: ignore[misc]
        dataclasses.make_dataclass("D", [("x", float | None, dataclasses.field(default=5.0))]),
    ],
)
def test_a_default_that_no_source_would_fill_in_is_refused(cls: type) -> None:
    with pytest.raises(SchemaError, match=r"\.x may be None and has another default"):
        rp.Pipeline("p").source("s", cls)
    rp.Pipeline("p").source("s", schema_of(cls))
    for other in (model(pydantic.Field(default=None)), struct(None), data()):
        assert checks_of(other) == {}


def test_settings_that_no_source_needs_are_passed_over() -> None:
    assert checks_of(model(frozen=True, extra="ignore", str_to_lower=False, title="t")) == {}
    assert checks_of(struct(frozen=True, kw_only=True, omit_defaults=True, gc=False)) == {}


def test_every_setting_that_the_libraries_have_is_known() -> None:
    known = {*declared._CONFIG_PASSED_OVER, *declared._CONFIG_HEEDED}
    assert set(pydantic.ConfigDict.__annotations__) <= known
    config = struct().__struct_config__
    names = {name for name in dir(config) if not name.startswith("_")}
    assert names == {*declared._STRUCT_PASSED_OVER, *declared._STRUCT_HEEDED}


def test_a_dataclass_of_pydantic_has_the_defaults_and_checks_that_it_declares() -> None:
    @pydantic.dataclasses.dataclass
    class Checked:
        k: Annotated[str, "the key"]
        x: float = pydantic.Field(default=None, gt=0)  # type: ignore[assignment]

    assert schema_of(Checked).fields == (
        Field("k", String(), doc="the key"),
        Field("x", Float(), True),
    )
    assert checks_of(Checked) == {"x": Checks(gt=0)}
