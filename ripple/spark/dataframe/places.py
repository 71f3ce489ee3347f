"""Sources that Spark reads: tables by name, and files in its file systems."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ripple.core.errors import InputError

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
_ENDINGS = {"parquet": "parquet", "csv": "csv", "json": "json", "jsonl": "json", "orc": "orc"}


@dataclass(frozen=True, slots=True)
class SparkPlace:
    """A table, or files of a format at a path."""

    table: str = ""
    form: str = ""
    path: str = ""

    @classmethod
    def of(cls, text: Any) -> SparkPlace | None:
        """Return the place that a source's text names, None if Ripple reads it itself.

        The text is ``table:NAME``, or ``[FORMAT:]SYSTEM:PATH`` of FORMATS and SYSTEMS. The format
        is by default that of the name's ending, or Parquet. Raises InputError for an empty name.
        """
        if not isinstance(text, str):
            return None
        if text.startswith(TABLE):
            name = text.removeprefix(TABLE).strip()
            if not name:
                raise InputError("table: needs the name of a table: table:DATABASE.NAME")
            return cls(table=name)
        found = _PLACE.fullmatch(text)
        if found is None:
            return None
        form, path = found.groups()
        return cls(form=form or _form_of(path), path=path)


def _form_of(path: str) -> str:
    words = path.rstrip("/").rpartition("/")[2].lower().split(".")
    while words and words[-1] in ("gz", "zst", "bz2"):
        words.pop()
    return _ENDINGS.get(words[-1], "parquet") if len(words) > 1 else "parquet"
