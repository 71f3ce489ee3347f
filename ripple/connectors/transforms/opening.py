"""``through:FILE.toml,URI``: the source after the comma, with the transforms of the file."""

from __future__ import annotations

import hashlib
import json
import tomllib
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ripple.connectors.inputs import Signal, is_inputs
from ripple.connectors.installed import load
from ripple.connectors.passed_inputs import PassedInputs
from ripple.connectors.source_inputs import ended, is_readable
from ripple.connectors.transforms.chain import Chain, transforms_of
from ripple.core.errors import InputError
from ripple.model.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.connectors.connector import Reading
    from ripple.connectors.inputs import Inputs
    from ripple.connectors.registry import Uri
    from ripple.core.cut import Cut
    from ripple.model.batch import Marker

FILE_BYTES_MAX = 1 << 20


def open_source(path: str, reading: Reading) -> ThroughInputs:
    """Return the source; raises InputError, and as the URI after the comma does."""
    chain, place = _chain(path, reading)
    inner = _found(place, "source").opened(replace(reading, shape=chain.needed), is_readable)
    return ThroughInputs(ended(inner, reading.name), chain)


def open_inputs(path: str, reading: Reading) -> ThroughInputs:
    """Return the inputs; raises InputError, and as the URI after the comma does."""
    chain, place = _chain(path, reading)
    asked = replace(reading, shape=chain.needed)
    return ThroughInputs(_found(place, "continued_source").opened(asked, is_inputs), chain)


def within(path: str) -> str:
    """Return the URI after the comma; raises InputError."""
    return _divided(path)[1]


def identity(path: str) -> str:
    """Return one text for equal transforms of the same source; raises as opening."""
    from ripple.connectors.identity import identity_of  # noqa: PLC0415 - which knows this module

    file, place = _divided(path)
    with _naming(file):
        said = json.dumps(_said(file), sort_keys=True, default=str)
    digest = hashlib.blake2b(said.encode(), digest_size=8).hexdigest()
    return f"through:{digest},{identity_of(place, 'continued_source')}"


def behind(path: str) -> str | None:
    """Return the file or folder that is read in the end; see Connector."""
    found = _found(_divided(path)[1], "source")
    return None if found.connector.path_of is None else found.connector.path_of(found.path)


def check(path: str) -> str:
    """Read the file, and check the URI after the comma; raises InputError."""
    file, place = _divided(path)
    with _naming(file):
        transforms = transforms_of(_said(file))
    found = _found(place, "source")
    text = f"before {place}"
    if found.connector.check:
        inner = load(found.connector.scheme, found.connector.package, found.connector.check)
        text = f"{text}: {inner(found.path)}"
    return f"transforms: {len(transforms)}, {text}"


class ThroughInputs(PassedInputs):
    """Inputs with transformed records; see Inputs."""

    def __init__(self, inner: Inputs, chain: Chain) -> None:
        super().__init__(inner)
        self._chain = chain
        self.never_waits: bool = getattr(inner, "never_waits", False)
        self.name: str | None = getattr(inner, "name", None)

    @property
    def fraction_read(self) -> float | None:
        """The share of the source already read, 0.0 to 1.0; None if unknown."""
        return getattr(self._inputs, "fraction_read", None)

    @property
    def keyed_by(self) -> tuple[str, ...] | None:
        """By which fields partitions were chosen; None where a transform changes one."""
        names = super().keyed_by
        found = None if names is None else [self._chain.name_of(name) for name in names]
        return None if found is None or None in found else tuple(map(str, found))

    def next(self, cut: Cut) -> tuple[str, Batch | Marker] | Signal:
        """Return the next entry transformed; see Inputs."""
        said = super().next(cut)
        if isinstance(said, Signal) or not isinstance(said[1], Batch):
            return said
        return said[0], self._chain.batch(said[1])


def _chain(path: str, reading: Reading) -> tuple[Chain, str]:
    file, place = _divided(path)
    if reading.shape.table is not None:
        raise InputError(
            f"cannot read the table {reading.name!r} through transforms, which take no deletions: "
            "read it without them, and put steps after .table(...)"
        )
    with _naming(file):
        return Chain(transforms_of(_said(file)), reading.shape), place


@contextmanager
def _naming(file: str) -> Iterator[None]:
    """Add the file's name to errors."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from error
    except (InputError, ValueError) as error:  # or no UTF-8, or no TOML
        raise InputError(f"{file}: {error}") from error


def _said(file: str) -> dict[str, Any]:
    with Path(file).open("rb") as opened:
        data = opened.read(FILE_BYTES_MAX + 1)
    if len(data) > FILE_BYTES_MAX:
        raise InputError(f"it has more than {FILE_BYTES_MAX} bytes")
    return tomllib.loads(data.decode())


def _divided(path: str) -> tuple[str, str]:
    file, comma, place = path.partition(",")
    if not (file and comma and place):
        raise InputError(f"cannot read through:{path}: it must be through:FILE.toml,URI")
    return file, place


def _found(place: str, use: Any) -> Uri:
    from ripple.connectors.registry import find  # noqa: PLC0415 - which knows this module

    return find(place, use)
