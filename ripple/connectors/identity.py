"""Identities of URIs, so that two processes know whether they mean the same target."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from typing import TYPE_CHECKING

from ripple.connectors.files.remote.address import canonical, is_remote, may_match
from ripple.connectors.installed import load
from ripple.connectors.locate import path_of
from ripple.connectors.registry import find, innermost
from ripple.core.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ripple.connectors.registry import UseName

LENGTH_MAX = 200
_CREDENTIALS = re.compile(r"//[^/@]*@")


def identity_of(place: str, use: UseName) -> str:
    """Return a text that is equal for all spellings of a URI, without secrets.

    Files and folders go by their real paths, so machines that share them have them at the same.
    Raises InputError, OutputError and ConnectorError, as opening it does.
    """
    found = find(place, use)
    connector = found.connector
    if connector.identity:
        text: str = load(connector.scheme, connector.package, connector.identity)(found.path)
    elif connector.path_of is not None and (path := connector.path_of(found.path)) is not None:
        text = f"{connector.scheme}:{os.path.realpath(path)}"
    else:
        text = f"{connector.scheme}:{_CREDENTIALS.sub('//', found.path)}"
    return shortened(text)


def check_places(
    sources: Iterable[str],
    sinks: Mapping[str, str],
    letters: str | None = None,
    *,
    continues: bool = True,
) -> None:
    """Raise OutputError where two outputs of a run, or a source and one, are the same place.

    sources, sinks: URIs, those of sinks by output. letters: the file of dead letters. continues:
    whether a restarted run resumes. Otherwise raises as opening does.
    """
    read, written = _uses(continues=continues)
    files = {name: _file_of(place, written) for name, place in sinks.items()}
    others = {name: place for name, place in sinks.items() if files[name] is None}
    targets = [*files.values(), letters]
    check_apart(None, targets)
    for source in sources:
        check_apart(_file_of(source, read), targets)
        _check_not_matched(innermost(source), read, targets)
        if others:
            check_not_read(source, others, continues=continues)


def _file_of(place: str, use: UseName) -> str | None:
    """Return the file or folder that a place is in, also in S3; None of other systems."""
    path = place if is_remote(place) else path_of(place, use)
    return canonical(path) if path is not None and is_remote(path) else path


def _check_not_matched(source: str, read: UseName, targets: Iterable[str | None]) -> None:
    found = find(source, read)
    may_read = may_match if is_remote(source) else found.connector.may_read
    for target in targets:
        if may_read is not None and target is not None and may_read(found.path, target):
            raise OutputError(
                f"cannot write {target}: the run's own source, {source}, reads it, too; "
                "give it another name"
            )


def check_not_read(source: str, sinks: Mapping[str, str], *, continues: bool = True) -> None:
    """Raise OutputError where an output, by its URI, goes to the source, or into its folder.

    A run would take its own results for records, without end. Otherwise raises as opening does.
    """
    read, written = _uses(continues=continues)
    folder = _file_of(source, read)
    source = innermost(source)
    for place in sinks.values():
        path = _file_of(place, written)
        if folder is not None and path is not None and _is_within(path, folder):
            raise _within(path)
        if _scheme(place) == _scheme(source) and (
            identity_of(_bare(source), read) == identity_of(_bare(place), written)
        ):
            shown = _CREDENTIALS.sub("//", place)
            raise OutputError(f"cannot write {shown}: it is the run's own source")


def _uses(*, continues: bool) -> tuple[UseName, UseName]:
    return ("continued_source", "continued_sink") if continues else ("source", "sink")


def _is_within(path: str, folder: str) -> bool:
    """Whether a path is in a folder; it need not exist, and the folder itself is not in it."""
    return os.path.realpath(path).startswith(os.path.join(os.path.realpath(folder), ""))


def _within(path: str) -> OutputError:
    return OutputError(
        f"cannot write {path}: it is in the folder of the run's own source; name another folder"
    )


def _scheme(place: str) -> str:
    return place.partition(":")[0]


def _bare(place: str) -> str:
    """Return a URI without its options; a path in a folder has none."""
    return place if _scheme(place) == "log" else place.partition("?")[0]


def shortened(text: str) -> str:
    """Return a text that is short enough to be said to others, and still no other one's."""
    if len(text) <= LENGTH_MAX:
        return text
    return f"{text[:LENGTH_MAX]}… {hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"


def check_apart(source: str | None, targets: Iterable[str | None]) -> None:
    """Raise OutputError when two places are the same file, or both standard output.

    Likewise for a target in the source's folder.
    source, targets: paths, ``-``, or None for other URIs. Devices and pipes may be shared, and
    folders of logs be written to more than once, as they have locks.
    """
    read = _file_identity(source, 0) if source is not None else None
    seen: dict[tuple[int, int] | str, str] = {}
    for target in targets:
        identity = None if target is None else _file_identity(target, 1)
        if target is None or identity is None:
            continue
        if source is not None and target != "-" and _is_within(target, source):
            raise _within(target)
        if identity == read:
            raise OutputError(f"cannot write {_file_name(target)}: it is the run's own source")
        if identity in seen and not os.path.isdir(target):
            raise OutputError(f"cannot write two things to {_file_name(target)}: give each its own")
        seen[identity] = target


def _file_identity(place: str, descriptor: int) -> tuple[int, int] | str | None:
    """Return the identity of a URI or path, None if it may be used twice."""
    try:
        status = os.fstat(descriptor) if place == "-" else os.stat(place)
    except OSError:
        return os.path.realpath(place)  # does not exist yet
    if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
        return status.st_dev, status.st_ino
    return "-" if place == "-" and descriptor == 1 else None


def _file_name(place: str) -> str:
    return "standard output" if place == "-" else place
