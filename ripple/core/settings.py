"""The settings of a process: flags, then environment variables, then a file, then defaults.

Nothing here does I/O: the caller gives the arguments, the environment and the tables of the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeAlias

from ripple.core.setting import Alias, InForce, Read, Setting, SettingsError, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

CONFIG_VARIABLE = "RIPPLE_CONFIG"
_ALMOST = 0.92  # one character more or less, or a missing unit


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


def mistyped(
    settings: Iterable[Setting], environment: Mapping[str, str], others: Iterable[str] = ()
) -> Iterator[str]:
    """Yield warnings of unknown variables that are almost one of a setting's, or of ``others``.

    Other variables that begin like ours may be of other programs, or of Kubernetes for a service of
    that name.
    """
    known = {name for one in settings for name in (one.variable, *(a.name for a in one.variables))}
    known |= {CONFIG_VARIABLE, *others}
    for name in sorted(environment):
        is_of_kubernetes = environment[name].startswith("tcp://")
        if name.startswith("RIPPLE_") and name not in known and not is_of_kubernetes:
            close = get_close_matches(name, sorted(known), n=1, cutoff=_ALMOST)
            if close:
                yield f"{name} is set, but is no setting: did you mean {close[0]}?"


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
