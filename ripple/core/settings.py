"""The settings of a process: flags, then environment variables, then a file, then defaults.

A setting is declared once; its flag, variable and place in a file follow from its name, and it may
have others. Nothing here does I/O: the caller gives the arguments, the environment and the bytes of
the file. A value in force says its origin.

A file is TOML, or an S-expression of the same tables: ``((cluster ((name prod))))``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeAlias

from ripple.core.errors import RippleError
from ripple.core.sexp import Sexp, SexpError, loads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

FILE_BYTES_MAX = 1 << 20
CONFIG_VARIABLE = "RIPPLE_CONFIG"
# So many milliseconds are 31 years and fit into 64 bits as nanoseconds; other numbers are smaller.
INTEGER_MAX = 10**12
TABLES_MAX = 32  # in each other
_TOO_DEEP = f"its tables are nested deeper than {TABLES_MAX}"

_ALMOST = 0.92  # one character more or less, or a missing unit
_INTEGER = re.compile(r"-?[0-9]{1,30}")
_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")

Value: TypeAlias = "bool | int | float | str"
Read: TypeAlias = "Callable[[Any], Value]"


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
    its flag needs no value. variables, places: other names in the environment, and in a file, from
    its top and with dots.
    """

    name: str
    help: str
    default: Value | None = None
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


@dataclass(frozen=True, slots=True)
class Arguments:
    """The parsed command line. config: the file it names, None for none."""

    values: Mapping[str, str]
    config: str | None = None
    is_check: bool = False
    is_help: bool = False


def arguments(settings: Iterable[Setting], given: Sequence[str]) -> Arguments:
    """Read ``--name value`` or ``--name=value``, ``--config FILE``, ``--check-config``, ``--help``.

    Switches stand alone. Raises SettingsError for an unknown flag, or one given twice or without
    its value.
    """
    settings = list(settings)
    flags = {setting.flag: setting.name for setting in settings} | {"--config": "config"}
    alone = {setting.flag for setting in settings if type(setting.default) is bool}
    values: dict[str, str] = {}
    switches = {"--check-config": False, "--help": False}
    left = list(given)
    while left:
        flag, has_value, value = left.pop(0).partition("=")
        if flag in switches and not has_value:
            switches[flag] = True
            continue
        if flag not in flags:
            raise SettingsError(f"{flag} is no flag{_meant(flag, [*flags, *switches])}")
        if flags[flag] in values:
            raise SettingsError(f"{flag} is there twice")
        if flag in alone and not has_value:
            values[flags[flag]] = "true"
            continue
        if not has_value and not left:
            raise SettingsError(f"{flag} needs a value")
        values[flags[flag]] = value if has_value else left.pop(0)
    config = values.pop("config", None)
    return Arguments(values, config, switches["--check-config"], switches["--help"])


def read_file(data: bytes, name: str) -> Mapping[str, Any]:
    """Return the tables of a file: TOML, or an S-expression where it begins with a parenthesis."""
    if len(data) > FILE_BYTES_MAX:
        raise SettingsError(f"{name} has {len(data)} bytes, more than {FILE_BYTES_MAX}")
    try:
        text = data.decode()
        is_sexp = text.lstrip().startswith("(")
        held = _table(loads(text), name) if is_sexp else tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, SexpError) as error:
        raise SettingsError(f"{name} cannot be read: {error}") from error
    except RecursionError as error:
        raise SettingsError(f"{name} cannot be read: {_TOO_DEEP}") from error
    if _depth_exceeds(held, TABLES_MAX):
        raise SettingsError(f"{name} cannot be read: {_TOO_DEEP}")
    return held


def _depth_exceeds(held: object, most: int) -> bool:
    if not isinstance(held, Mapping):
        return False
    return most == 0 or any(_depth_exceeds(one, most - 1) for one in held.values())


def _table(value: Sexp, place: str) -> dict[str, Any]:
    """Return a list of pairs as a table; a value that is a list is a table too."""
    found: dict[str, Any] = {}
    for pair in value if isinstance(value, list) else [value]:
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise SettingsError(
                f"{place} has {pair!r:.60} where a pair of name and value should be"
            )
        name, held = str(pair[0]), pair[1]
        if name in found:
            raise SettingsError(f"{place} has {name} twice")
        found[name] = held if isinstance(held, str) else _table(held, f"{place}, {name}")
    return found


def in_force(
    settings: Sequence[Setting],
    given: Arguments,
    environment: Mapping[str, str],
    file: Mapping[str, Any],
    *,
    section: str,
    others: Sequence[str] = (),
) -> dict[str, InForce]:
    """Return each setting that has a value, by name, and where that came from.

    section: the file's table for this process. others: places in the file that other processes
    read. Raises SettingsError; also for an unknown place in the file.
    """
    _refuse_unknown(settings, file, section, others)
    found = {}
    for setting in settings:
        choices = (
            [(setting.flag, given.values[setting.name], None)]
            if setting.name in given.values
            else _from_environment(setting, environment) or _from_file(setting, file, section)
        )
        if len(choices) > 1:
            names = " and ".join(origin for origin, _, _ in choices)
            raise SettingsError(f"{setting.name} is given twice: by {names}")
        for origin, value, read in choices:
            found[setting.name] = InForce(_value(setting, value, read, origin), origin)
        if not choices and setting.default is not None:
            found[setting.name] = InForce(setting.default, "default")
    return found


def mistyped(settings: Sequence[Setting], environment: Mapping[str, str]) -> Iterator[str]:
    """Yield warnings of unknown variables that are almost one of a setting's.

    Other variables that begin like ours may be of other programs, or of Kubernetes for a service of
    that name.
    """
    known = {name for one in settings for name in (one.variable, *(a.name for a in one.variables))}
    known.add(CONFIG_VARIABLE)
    for name in sorted(environment):
        if name.startswith("RIPPLE_") and name not in known:
            close = get_close_matches(name, sorted(known), n=1, cutoff=_ALMOST)
            if close:
                yield f"{name} is set, but is no setting: did you mean {close[0]}?"


def missing(settings: Sequence[Setting], found: Mapping[str, InForce]) -> list[str]:
    """Return the missing settings, and how to give them."""
    return [
        f"{setting.name} is missing: give {setting.flag} or {setting.variable} ({setting.help})"
        for setting in settings
        if setting.name not in found
    ]


def as_text(settings: Sequence[Setting], found: Mapping[str, InForce], section: str) -> str:
    """Return the settings in force as an equal file, with the origin of each."""
    lines = [f"[{section}]"]
    for setting in settings:
        if setting.name in found:
            value, origin = found[setting.name].value, found[setting.name].origin
            shown = _quoted(value) if isinstance(value, str) else str(value).lower()
            lines.append(f"{setting.name} = {shown}  # {origin}")
        else:
            lines.append(f"# {setting.name} is missing: {setting.help}")
    return "\n".join(lines) + "\n"


def help_text(command: str, settings: Sequence[Setting]) -> str:
    """Return the text of ``--help``."""
    lines = [
        f"usage: {command} [--config FILE] [--check-config] [--help] [--SETTING VALUE ...]",
        "",
    ]
    for setting in settings:
        default = "required" if setting.default is None else f"default {_default(setting)}"
        lines.append(f"  {setting.flag} ({default}; {setting.variable})")
        lines.append(f"      {setting.help}")
    return "\n".join(lines) + "\n"


_Choice: TypeAlias = (
    "tuple[str, Any, Read | None]"  # where it is from, what it says, how to read it
)


def _value(setting: Setting, given: Any, read: Read | None, origin: str) -> Value:
    try:
        return setting.value_of(given if read is None else read(given), origin)
    except ValueError as error:
        raise SettingsError(f"{setting.name} is {given!r:.60}: {error} (from {origin})") from error


def _from_environment(setting: Setting, environment: Mapping[str, str]) -> list[_Choice]:
    names = [Alias(setting.variable), *setting.variables]
    return [(one.name, environment[one.name], one.read) for one in names if one.name in environment]


def _from_file(setting: Setting, file: Mapping[str, Any], section: str) -> list[_Choice]:
    found: list[_Choice] = []
    for one in (Alias(f"{section}.{setting.name}"), *setting.places):
        held: Any = file
        for part in one.name.split("."):
            held = held.get(part) if isinstance(held, Mapping) else None
        if held is not None:
            found.append((f"{one.name} in the file", held, one.read))
    return found


def _refuse_unknown(
    settings: Sequence[Setting], file: Mapping[str, Any], section: str, others: Sequence[str]
) -> None:
    known = [f"{section}.{setting.name}" for setting in settings]
    known += [place.name for setting in settings for place in setting.places]
    known += others
    for place in _places(file, known):
        raise SettingsError(f"the file has {place}, an unknown setting{_meant(place, known)}")


def _places(file: Mapping[str, Any], known: Sequence[str], above: str = "") -> list[str]:
    """Return the unknown places, not within a known one."""
    found = []
    for name, held in file.items():
        place = f"{above}{name}"
        if place in known:
            continue
        if isinstance(held, Mapping):
            found += _places(held, known, f"{place}.")
        else:
            found.append(place)
    return found


def _meant(name: str, known: Sequence[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f": did you mean {close[0]}?" if close else ""


def _default(setting: Setting) -> str:
    if type(setting.default) is bool:
        return "on" if setting.default else "off"
    return "none" if setting.default == "" else str(setting.default)


def _quoted(text: str) -> str:
    escaped = "".join(
        f"\\u{ord(char):04x}" if ord(char) < 32 or char in '"\\\x7f' else char for char in text
    )
    return f'"{escaped}"'
