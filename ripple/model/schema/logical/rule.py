"""The rule of a logical type: all its particulars."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import pyarrow as pa

from ripple.model.schema.bytes_form import HEX
from ripple.model.schema.logical.binary import BytesRule
from ripple.model.schema.logical.dates import DateRule
from ripple.model.schema.logical.decimals import DecimalRule
from ripple.model.schema.logical.json_texts import JsonTextRule
from ripple.model.schema.logical.maps import MapRule
from ripple.model.schema.logical.patterns import PatternDateRule, PatternTimeRule
from ripple.model.schema.logical.times import DateTimeRule
from ripple.model.schema.logical.uuids import UuidRule
from ripple.model.schema.logical.wide_decimals import WideDecimalRule
from ripple.model.schema.types import (
    DECIMALS,
    Bytes,
    Date,
    DateTime,
    Decimal,
    Dict,
    HexBytes,
    JsonText,
    Logical,
    PatternDate,
    PatternTime,
    Uuid,
    WideDecimal,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ripple.model.schema.bytes_form import BytesForm
    from ripple.model.schema.date_form import DateForm
    from ripple.model.schema.decimal_form import DecimalForm, WideDecimalForm
    from ripple.model.schema.document import Json
    from ripple.model.schema.json_form import JsonForm
    from ripple.model.schema.map_form import MapForm
    from ripple.model.schema.time_form import TimeForm
    from ripple.model.schema.uuid_form import UuidForm

    Ints = npt.NDArray[np.int64]
    Form: TypeAlias = (
        DateForm
        | DecimalForm
        | WideDecimalForm
        | TimeForm
        | UuidForm
        | BytesForm
        | MapForm
        | JsonForm
    )


class Rule(Protocol):
    """The rule of one logical type.

    word: a value in messages, with its article. arrow: the type of columns outside. bounds: the
    smallest and the largest number. Of a ``LogicalText`` the number is the text that is stored, and
    all texts are within bounds.
    """

    word: str
    arrow: pa.DataType
    bounds: tuple[int, int]

    @property
    def avro(self) -> dict[str, Json]:
        """The type in Avro."""

    @property
    def json(self) -> dict[str, Json]:
        """The type in JSON Schema."""

    def form(self, form: str | None, zone: str | None) -> Form:
        """Return how a source writes values. Raises SchemaError unless values have such a form."""

    def takes(self, arrow: pa.DataType) -> bool:
        """Tell whether columns of an Arrow type hold such values, and not texts of them."""

    def stored(self, column: pa.Array) -> pa.Array:
        """Return a column of a type that ``takes`` accepts as stored, null for a misfit."""

    def shown(self, column: pa.Array) -> pa.Array:
        """Return a stored column as a column of ``arrow``."""

    def number(self, value: Any) -> Any:
        """Return a Python value as stored; None for a value of another type."""

    def value(self, number: Any) -> Any:
        """Return the Python value of a stored one."""

    def text(self, value: Any) -> str | None:
        """Return the text of a Python value, for its form; None for a value of another type."""

    def written(self, number: Any) -> str:
        """Return the text of a number within bounds, as sinks write it."""

    def texts(self, column: pa.Array) -> pa.Array:
        """Return a stored column, within bounds, as such texts."""

    def array(self, numbers: Any) -> npt.NDArray[Any]:
        """Return an array for users' functions. Arrays of dates and times share the memory."""

    def numbers(self, array: npt.NDArray[Any]) -> Ints | None:
        """Return the numbers of such an array, None if it is another one."""


FIXED: dict[type, Rule] = {
    Date: DateRule(),
    DateTime: DateTimeRule(),
    Uuid: UuidRule(),
    Bytes: BytesRule(),
    HexBytes: BytesRule(HEX),
    JsonText: JsonTextRule(),
    PatternDate: PatternDateRule(),
    PatternTime: PatternTimeRule(),
}
"""The rules of types without parameters."""


def rule_of(kind: Logical) -> Rule:
    """Return the rule of a logical type."""
    if isinstance(kind, DECIMALS):
        return _decimal_rule(kind)
    return _map_rule(kind) if isinstance(kind, Dict) else FIXED[type(kind)]


@lru_cache(maxsize=256)
def _map_rule(kind: Dict) -> Rule:
    return MapRule(kind)


@lru_cache(maxsize=256)
def _decimal_rule(kind: Decimal | WideDecimal) -> Rule:
    return DecimalRule(kind) if isinstance(kind, Decimal) else WideDecimalRule(kind)
