"""A setting, declared as a field of a process's dataclass, and that dataclass from values.

A setting is declared once; its flag, variable and place in a file follow from its name, and it may
have others. A value in force says its origin.

    @dataclass(frozen=True, kw_only=True)
    class Settings:
        port: int = setting("port of gRPC", default=9200, within=(0, 65_535))
        s3: S3Settings = group(S3Settings)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ripple.core.errors import RippleError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# So many milliseconds are 31 years and fit into 64 bits as nanoseconds; other numbers are smaller.
INTEGER_MAX = 10**12

_INTEGER = re.compile(r"-?[0-9]{1,30}")
_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")

Value: TypeAlias = "bool | int | float | str"
Read: TypeAlias = "Callable[[Any], Value]"
Found: TypeAlias = "Mapping[str, InForce]"
T = TypeVar("T")


class SettingsError(RippleError):
    """Settings are wrong; the message names the setting and where it came from."""


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name of a setting, and how its value is read there; a plain one is read as it is."""

    name: str
    read: Read | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting. default: None where there has to be a value.

    The type of values is that of ``default``, a text if there is none; a boolean one is a switch:
    its flag needs no value. least, most, within: bounds, inclusive. choices: all values that it may
    have. variables, places: other names in the environment, and in a file, from its top and with
    dots.
    """

    name: str = ""
    help: str
    default: Value | None = None
    least: int | None = None
    most: int | None = None
    within: tuple[int, int] | None = None
    choices: tuple[str, ...] = ()
    variables: tuple[Alias, ...] = ()
    places: tuple[Alias, ...] = ()

    @property
    def flag(self) -> str:
        """Its flag."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return "RIPPLE_" + self.name.upper()

    def checked(self, given: InForce) -> Value:
        """Return the value, if it is within bounds. Raises SettingsError."""
        value: Any = given.value
        wrong = ""
        if self.least is not None and value < self.least:
            wrong = f"less than {self.least}"
        elif self.most is not None and value > self.most:
            wrong = f"more than {self.most}"
        elif self.within is not None and not self.within[0] <= value <= self.within[1]:
            wrong = f"not from {self.within[0]} to {self.within[1]}"
        elif self.choices and value not in self.choices:
            wrong = f"none of {', '.join(self.choices)}"
        if wrong:
            raise SettingsError(f"{self.name} is {value}, {wrong} (from {given.origin})")
        return given.value

    def value_of(self, given: Any, origin: str) -> Value:
        """Return a value as it was given, as this setting's. Raises SettingsError."""
        if type(self.default) is bool:
            if given is True or given == "true":
                return True
            if given is False or given == "false":
                return False
            raise SettingsError(f"{self.name} is {given!r}, not true or false (from {origin})")
        if type(self.default) is float:
            return self._number(given, origin)
        if type(self.default) is not int:
            if isinstance(given, str) and (given or self.default == ""):
                return given
            raise SettingsError(f"{self.name} is {given!r}, not a text (from {origin})")
        # As people write a number, and nothing else that Python takes for one.
        if type(given) is not int and not (isinstance(given, str) and _INTEGER.fullmatch(given)):
            raise SettingsError(f"{self.name} is {given!r}, not an integer (from {origin})")
        if abs(value := int(given)) > INTEGER_MAX:
            raise SettingsError(f"{self.name} is {value}, more than {INTEGER_MAX} (from {origin})")
        return value

    def _number(self, given: Any, origin: str) -> float:
        # As above; nor NaN or infinity, which TOML has.
        if type(given) in {int, float} and abs(given) < float("inf"):
            return float(given)
        if isinstance(given, str) and _NUMBER.fullmatch(given):
            return float(given)
        raise SettingsError(f"{self.name} is {given!r}, not a number (from {origin})")


@dataclass(frozen=True, slots=True)
class InForce:
    """A value, and its origin for messages."""

    value: Value
    origin: str


def setting(
    help_text: str,
    *,
    default: Any = None,
    make: Callable[[Found], Any] | None = None,
    **about: Any,
) -> Any:
    """Return the field of a setting.

    default: None where there has to be a value. make: the field's value from the settings in force,
    by default the setting's own; it checks them. about: more of Setting; its name is the field's.
    """
    return taking((Setting(help=help_text, default=default, **about),), make)


def group(kind: type) -> Any:
    """Return a field whose settings are the fields of another dataclass."""
    return taking(settings_of(kind), partial(made, kind))


def taking(settings: tuple[Setting, ...], make: Callable[[Found], Any] | None) -> Any:
    """Return a field computed from several settings, or from all in force."""
    about = {"settings": settings, "make": make}
    if make is not None or settings[0].default is None:
        return field(metadata=about)
    return field(default=settings[0].default, metadata=about)


def settings_of(kind: type) -> tuple[Setting, ...]:
    """Return the settings of a dataclass, in order."""
    return tuple(
        one if one.name else replace(one, name=each.name)
        for each in fields(kind)
        for one in each.metadata.get("settings", ())
    )


def made(kind: type[T], found: Found) -> T:
    """Return a dataclass of the settings in force. Raises SettingsError; also if one is missing."""
    settings = {one.name: one for one in settings_of(kind)}
    if problems := missing(tuple(settings.values()), found):
        raise SettingsError("; ".join(problems))
    values = {}
    for each in fields(kind):  # type: ignore[arg-type]  # a dataclass
        make = each.metadata["make"]
        name = each.name if make else each.metadata["settings"][0].name or each.name
        values[each.name] = make(found) if make else settings[name].checked(found[name])
    return kind(**values)


def missing(settings: Sequence[Setting], found: Mapping[str, InForce]) -> list[str]:
    """Return the missing settings, and how to give them."""
    return [
        f"{setting.name} is missing: give {setting.flag} or {setting.variable} ({setting.help})"
        for setting in settings
        if setting.name not in found
    ]


def milliseconds(seconds: Any) -> int:
    """Read seconds, as Ripple/OCaml has them. Raises ValueError."""
    if isinstance(seconds, bool):
        raise ValueError("not a number of seconds")
    value = float(seconds) * 1000
    if not 0 < value < 2**53 or value != int(value):
        raise ValueError("not a number of seconds with at most three decimals")
    return int(value)
