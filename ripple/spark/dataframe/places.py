"""Sources that Spark reads: tables by name, and files in its file systems."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ripple.core.arguments import shown
from ripple.core.errors import InputError
from ripple.model.window.instant import instant_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

TABLE = "table:"
FORMATS = ("parquet", "csv", "json", "orc", "delta")
# File systems of Hadoop; the user brings their packages. file: is the disk of each machine.
SYSTEMS = (
    "file",
    "hdfs",
    "viewfs",
    "s3a",
    "s3n",
    "abfs",
    "abfss",
    "wasb",
    "wasbs",
    "gs",
    "dbfs",
    "oss",
)
_PLACE = re.compile(rf"(?:({'|'.join(FORMATS)}):)?((?:{'|'.join(SYSTEMS)}):.+)", re.DOTALL)
# As in SQL: VERSION AS OF 12, TIMESTAMP AS OF 2024-02-26T14:30:00Z.
_AS_OF = re.compile(r"(.+?)\s+(version|timestamp)\s+as\s+of\s+(.+)", re.DOTALL | re.IGNORECASE)
_ENDINGS = {"parquet": "parquet", "csv": "csv", "json": "json", "jsonl": "json", "orc": "orc"}


@dataclass(frozen=True, slots=True)
class SparkPlace:
    """A table, or files of a format at a path.

    version: of a table of Delta Lake or Iceberg. at_ns: a time, for the version that it had then.
    """

    table: str = ""
    form: str = ""
    path: str = ""
    version: int | None = None
    at_ns: int | None = None

    @classmethod
    def of(cls, text: Any) -> SparkPlace | None:
        """Return the place that a source's text names, None if Ripple reads it itself.

        The text is ``table:NAME``, or ``[FORMAT:]SYSTEM:PATH`` of FORMATS and SYSTEMS. The format
        is by default the name's ending, or Parquet. ``VERSION AS OF NUMBER`` or ``TIMESTAMP
        AS OF TIME`` may follow a table, or a path of Delta Lake. Raises InputError for an empty
        name, a malformed version or time, and a version of files.
        """
        if not isinstance(text, str):
            return None
        past = _AS_OF.fullmatch(text)
        named = text if past is None else past[1]
        if named.startswith(TABLE):
            name = named.removeprefix(TABLE).strip()
            if not name:
                raise InputError("table: needs the name of a table: table:DATABASE.NAME")
            found = cls(table=name)
        else:
            place = _PLACE.fullmatch(named)
            if place is None:
                return None
            form, path = place.groups()
            found = cls(form=form or _form_of(path), path=_from_root(path))
        if past is None:
            return found
        if found.path and found.form != "delta":
            raise InputError(f"{named} has files of {found.form}, which have no versions")
        return _past(found, past[2].lower(), past[3].strip().strip("'"))

    @property
    def text(self) -> str:
        """The text that names it."""
        named = f"{TABLE}{self.table}" if self.table else f"{self.form}:{self.path}"
        return named if self.version is None else f"{named} VERSION AS OF {self.version}"


def _past(place: SparkPlace, kind: str, text: str) -> SparkPlace:
    if kind == "version":
        if not text.isascii() or not text.isdigit():
            raise InputError(f"VERSION AS OF is followed by a whole number, not {shown(text)}")
        return replace(place, version=int(text))
    try:
        return replace(place, at_ns=instant_ns(text))
    except ValueError:
        raise InputError(
            f"TIMESTAMP AS OF is followed by a time, as in 2024-02-26T14:30:00Z, not {shown(text)}"
        ) from None


def check_files(files: Sequence[str], at: SparkPlace) -> None:
    """Raise InputError where there are no files at a place, or some of another format by name."""
    if not files:
        raise InputError(
            f"there are no files of {at.form} at {at.path}; another format is named before the path"
        )
    for file in files:
        form = form_told(file)
        if form not in (None, at.form):
            raise InputError(
                f"{at.path} has a file of {form} where those of {at.form} are read, {file}: name "
                "files of one format, by a pattern such as file:/data/*.csv"
            )


def _from_root(path: str) -> str:
    """Return a path of a file system, that of the own disk from its root."""
    system, _, rest = path.partition(":")
    if rest.startswith("/"):
        return path
    if system == "file":
        return f"file:{os.path.abspath(rest)}"
    raise InputError(f"{path} is no path of {system}: it begins at the root, as {system}:/{rest}")


def _form_of(path: str) -> str:
    return form_told(path) or "parquet"


def form_told(path: str) -> str | None:
    """Return the format that the ending of a name tells, None if it tells none."""
    words = path.rstrip("/").rpartition("/")[2].lower().split(".")
    while words and words[-1] in ("gz", "zst", "bz2"):
        words.pop()
    return _ENDINGS.get(words[-1]) if len(words) > 1 else None
