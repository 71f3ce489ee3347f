"""How a CSV file is written, by its URI's options: ``csv:FILE?delimiter=;&decimal=,``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ripple.connectors.files.csv.format import PLAIN, Dialect
from ripple.connectors.files.remote.address import without_secrets
from ripple.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.connectors.files.csv.format import Comments

FORM = "csv:FILE[?delimiter=;&decimal=,&thousands=.&null=NA&comments=anywhere&header]"
_NAMES = {"tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " ", "colon": ":"}
_DELIMITERS = "\t,;|:^~!$%&*/@"
_THOUSANDS = ".,' _"
_COMMENTS: dict[str, Comments] = {"ahead": "ahead", "anywhere": "anywhere", "none": "none"}


class Options:
    """The options of a URI. header, comments: None where they are not given."""

    def __init__(self) -> None:
        self.delimiter: str | None = None
        self.decimal = PLAIN.decimal
        self.thousands = PLAIN.thousands
        self.nulls: list[str] = []
        self.header: bool | None = None
        self.comments: Comments | None = None

    def dialect(self, path: str) -> Dialect:
        """Return the dialect. Raises InputError where two characters cannot be told apart."""
        usual = "\t" if is_of_tabs(path) else PLAIN.delimiter
        delimiter = usual if self.delimiter is None else self.delimiter
        used = [delimiter, self.decimal, *self.thousands]
        if len(set(used)) < len(used):
            raise InputError(
                f"{path}: delimiter, decimal and thousands are {', '.join(map(repr, used))}, and "
                "must differ"
            )
        return Dialect(delimiter, self.decimal, self.thousands, tuple(self.nulls))


def is_of_tabs(path: str) -> bool:
    """Return whether a file's name says that tabs divide its fields."""
    return path.removesuffix(".gz").removesuffix(".zst").endswith(".tsv")


def divided(text: str) -> tuple[str, str]:
    """Return the path, and the options behind its last ``?``; a file of the whole name has none."""
    path, mark, options = text.rpartition("?")
    names = {option.partition("=")[0] for option in options.split("&")}
    if not mark or os.path.lexists(text):
        return text, ""
    if "=" in options or names <= _READERS.keys() or _is_misspelled(path, options):
        return path, options
    return text, ""


def _is_misspelled(path: str, option: str) -> bool:
    """Return whether the word behind a file's name is an option, although there is none such."""
    return option.isidentifier() and path.endswith((".csv", ".tsv")) and os.path.lexists(path)


def has_options(text: str) -> bool:
    """Return whether a path has options, and all of them are of CSV."""
    _, mark, options = text.rpartition("?")
    names = {option.partition("=")[0] for option in options.split("&")}
    return bool(mark) and names <= _READERS.keys()


def parsed(text: str) -> tuple[str, Options]:
    """Return the path and the options of ``FILE[?OPTION=VALUE&…]``; raises InputError."""
    path, given = divided(text)
    options, shown = Options(), without_secrets(text)
    for option in given.split("&") if given else ():
        name, has_value, value = option.partition("=")
        if name not in _READERS:
            raise InputError(
                f"{shown}: there is no option {name!r} of CSV: there are {', '.join(_READERS)}"
            )
        if not has_value and name != "header":
            raise InputError(f"{shown}: the option {name} needs a value, as in {FORM}")
        try:
            _READERS[name](options, unquote(value))
        except ValueError as error:
            raise InputError(f"{shown}: the option {name} is {error}, not {value!r}") from None
    return path, options


def without_header(text: str) -> str:
    """Return the address of a file that is to be written without a header, if it does not say."""
    path, given = divided(text)
    options = given.split("&") if given else []
    if any(option.partition("=")[0] == "header" for option in options):
        return text
    return f"{path}?{'&'.join([*options, 'header=no'])}"


def path_of(text: str) -> str:
    """Return the path without options."""
    return divided(text)[0]


def _delimiter(options: Options, value: str) -> None:
    found = _NAMES.get(value, value)
    if len(found) != 1 or found not in _DELIMITERS:
        raise ValueError(f"one of {' '.join(_DELIMITERS[1:])} (& as %26) or tab")
    options.delimiter = found


def _decimal(options: Options, value: str) -> None:
    options.decimal = _NAMES.get(value, value)
    if options.decimal not in (".", ","):
        raise ValueError(". or ,")


def _thousands(options: Options, value: str) -> None:
    options.thousands = _NAMES.get(value, value)
    if len(options.thousands) != 1 or options.thousands not in _THOUSANDS:
        raise ValueError("one of . , ' _ or space")


def _null(options: Options, value: str) -> None:
    options.nulls.append(value)


def _header(options: Options, value: str) -> None:
    if value not in ("", "yes", "no"):
        raise ValueError("yes or no")
    options.header = value != "no"


def _comments(options: Options, value: str) -> None:
    if value not in _COMMENTS:
        raise ValueError(f"one of {', '.join(_COMMENTS)}")
    options.comments = _COMMENTS[value]


_READERS: dict[str, Callable[[Options, str], None]] = {
    "delimiter": _delimiter,
    "decimal": _decimal,
    "thousands": _thousands,
    "null": _null,
    "header": _header,
    "comments": _comments,
}
