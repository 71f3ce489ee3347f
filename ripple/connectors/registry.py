"""Finds the connector of a URI: by its scheme, by its suffix, or as a stream."""

from __future__ import annotations

import os
import re
import stat
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ripple.connectors import installed
from ripple.connectors.connector import Connector, Use
from ripple.connectors.files.csv.dialect import divided
from ripple.connectors.files.folder.listing import is_pattern
from ripple.connectors.files.remote.address import is_remote, scheme_of, without_secrets
from ripple.connectors.standard import descriptor_of
from ripple.core.errors import ConnectorError, InputError, OutputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ripple.connectors.connector import Reading, Writing
    from ripple.core.errors import RippleError

OWN = (
    "ripple.connectors.files.csv.connector",
    "ripple.connectors.files.json.connector",
    "ripple.connectors.files.parquet.connector",
    "ripple.connectors.files.folder.connector",
    "ripple.connectors.files.remote.s3_connector",
    "ripple.connectors.files.remote.https_connector",
    "ripple.connectors.log.connector",
    "ripple.connectors.kafka.connector",
    "ripple.connectors.nats.connector",
    "ripple.connectors.nats.subject_connector",
    "ripple.connectors.nats.liftbridge_connector",
    "ripple.connectors.redis.connector",
    "ripple.connectors.postgres.connector",
    "ripple.connectors.delta_lake.connector",
    "ripple.connectors.iceberg.connector",
    "ripple.connectors.websocket.connector",
    "ripple.connectors.websocket.secure_connector",
    "ripple.connectors.synthetic.connector",
    "ripple.connectors.clock_connector",
    "ripple.connectors.transforms.connector",
)
"""Modules with a CONNECTOR each, in the order of `ripple connector list`."""
OF_FILES = "files"
"""The scheme of folders and patterns."""
OF_STREAMS = "csv"
"""The format of a pipe, a device or -, unless its name says otherwise."""
OF_OPTIONS = "csv"
"""The format of files whose names may have options behind them."""

UseName = Literal["source", "sink", "continued_source", "continued_sink"]
USES: tuple[UseName, ...] = ("source", "sink", "continued_source", "continued_sink")

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_REFUSALS: dict[UseName, tuple[type[RippleError], str]] = {
    "source": (InputError, "cannot tell how to read {}: it must be {}"),
    "sink": (OutputError, "cannot tell how to write {}: it must be {}"),
    "continued_source": (
        InputError,
        "resuming after a crash needs a source that can be read again, not "
        "{}: put it into a log with ripple log append, and read {}",
    ),
    "continued_sink": (
        OutputError,
        "cannot write {} so that a restart continues it: it must be {}",
    ),
}


class Uri(NamedTuple):
    """A parsed URI: a connector, its use, and the text after the scheme."""

    connector: Connector
    use: Use
    path: str

    def opened(self, asked: Reading | Writing, is_wanted: Callable[[object], bool]) -> Any:
        """Return the opened source or sink; raises as the connector does, and ConnectorError."""
        scheme, package, opens = self.connector.scheme, self.connector.package, self.use.opens
        opened = installed.load(scheme, package, opens)(self.path, asked)
        if not is_wanted(opened):
            raise ConnectorError(
                f"connector {scheme!r} of {package}: what {opens} returns, of type "
                f"{type(opened).__name__}, lacks something of ripple.connectors.contract"
            )
        return opened


def find(text: str, use: UseName) -> Uri:
    """Return the parsed URI.

    A scheme takes precedence, so that a path with a colon begins with ``./`` or ``/``; with an
    unknown scheme, an existing file of that name is found as well. Raises InputError or
    OutputError if there is no connector, or it does not support the use; ConnectorError.
    """
    found, path = connector_of(text), text.partition(":")[2]
    if found is None:
        found, path = _of_path(text, use), text
    way: Use | None = getattr(found, use, None)
    if found is None or way is None or (way.suffixes and not path):
        raise refused(repr(without_secrets(text)) + _as_files(found, path, use), use)
    if way.suffixes and not way.on_stream and is_stream(path):
        error = _REFUSALS[use][0]
        raise error(f"{text!r} is a stream, and {found.scheme} needs a file")
    return Uri(found, way, path)


def _as_files(found: Connector | None, path: str, use: UseName) -> str:
    """Return the hint at the resumable form of a file named by its format, "" for others."""
    if use != "continued_source" or is_stream(path):
        return ""
    named = _of_name(path, "source")
    is_file = named is not None and found in (None, named)
    return f" (as files:{path} it can, in one process)" if is_file else ""


def of_file(path: str) -> Uri:
    """Return the URI of one file of a source of several, by its name; raises as ``find``."""
    if not is_remote(path):
        return find(path, "source")
    return _by_name(path, "source", "read")


def of_written_file(path: str) -> Uri:
    """Return the URI of an object that is written, by its name; raises OutputError."""
    return _by_name(path, "sink", "write")


def _by_name(path: str, use: UseName, verb: str) -> Uri:
    found = _of_name(path, use)
    way: Use | None = getattr(found, use, None)
    if found is None or way is None:
        raise _REFUSALS[use][0](
            f"cannot tell how to {verb} {path}: its name must end as that of a file does, in .csv "
            f"or .parquet; or say which it is, as csv:{path}"
        )
    return Uri(found, way, path)


def innermost(text: str) -> str:
    """Return the URI of the system behind all transforms; raises as ``connector_of``."""
    while (found := connector_of(text)) is not None and found.within is not None:
        text = found.within(text.partition(":")[2])
    return text


def refused(shown: str, use: UseName) -> RippleError:
    """Return the error for a URI without this use, with the usable ones. shown: it, for people."""
    error, refusal = _REFUSALS[use]
    return error(refusal.format(shown, forms(use)))


def forms(use: UseName) -> str:
    """Return which places of Ripple's own connectors can be used so, for people."""
    usable = [(each, way) for each in own().values() if (way := getattr(each, use))]
    texts = [each.form for each, _ in usable]
    files = [way.suffixes for _, way in usable if way.suffixes]
    if files:
        packed = {
            name[name.rindex(".") :] for names in files for name in names if name.count(".") > 1
        }
        also = f" (text also {', '.join(sorted(packed))})" if packed else ""
        texts.insert(0, f"a {_listed([names[0] for names in files], ' or ')} file{also}")
    if any(way.on_stream for _, way in usable):
        texts.append(f"{OF_STREAMS.upper()} at -, a pipe or a device")
    return _listed(texts, ", or ")


@cache
def own() -> dict[str, Connector]:
    """Return Ripple's own connectors by scheme."""
    found = [import_module(name).CONNECTOR for name in OWN]
    return {each.scheme: each for each in found}


def schemes() -> list[str]:
    """Return all schemes: Ripple's own, and those of installed packages."""
    return [*own(), *sorted({*installed.schemes()} - {*own()})]


def _usable(use: UseName) -> list[str]:
    """Return the schemes that can be used so; those of installed packages without a look."""
    known = own()
    return [one for one in schemes() if one not in known or getattr(known[one], use) is not None]


def of_scheme(scheme: str) -> Connector | None:
    """Return the connector of a scheme, None if there is none; raises ConnectorError."""
    return own().get(scheme) or installed.connector(scheme)


def connector_of(place: str) -> Connector | None:
    """Return the connector of a URI with a scheme; raises ConnectorError."""
    if is_remote(place):  # as browsers have it, in capitals, too
        return of_scheme(scheme_of(place))
    named = _SCHEME.fullmatch(place)
    return of_scheme(named[1]) if named else None


def is_stream(path: str) -> bool:
    """Whether this is standard input or output (of any kind), a pipe or a device."""
    mode = _mode(path)
    is_other = bool(mode and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)))
    return path == "-" or descriptor_of(path) is not None or is_other


def _mode(path: str) -> int:
    """Return the file mode at a path, 0 if there is no file."""
    try:
        return os.stat(path).st_mode
    except (OSError, ValueError):
        return 0


def _of_path(text: str, use: UseName) -> Connector | None:
    """Return the connector of a path, None if its name tells of none; raises as ``find`` does."""
    error, mode, named = _REFUSALS[use][0], _mode(text), _SCHEME.fullmatch(text)
    if named and not mode:
        raise error(
            f"there is no file {without_secrets(text)!r} and no scheme {named[1]!r}: there are "
            f"{_listed(_usable(use), ' and ')}; a path with a colon begins with ./ or /"
        )
    is_folder = stat.S_ISDIR(mode)
    is_read = use in ("source", "continued_source")
    if is_read and (not _is_claimed(text) if is_folder else is_pattern(text)):
        return own()[OF_FILES]
    path, options = divided(text)
    found = _of_name(path, use)
    if options and found is not own()[OF_OPTIONS]:
        return None
    if found is None and text.endswith("/") and not mode:
        raise error(f"there is no folder {text!r}")
    if found is None and is_folder:
        raise error(f"{text!r} is a folder: if it is an event log, write log:{text}")
    return found


def _is_claimed(folder: str) -> bool:
    """Whether a connector claims a folder, which then is no folder of files."""
    return any(each.claims is not None and each.claims(folder) for each in own().values())


def _of_name(path: str, use: UseName) -> Connector | None:
    name = os.path.basename(path.rstrip("/"))[1:]  # a name that is nothing but a suffix has none
    found = _of_suffix(name, use)
    return own()[OF_STREAMS] if found is None and is_stream(path) else found


@lru_cache(256)  # a run asks several times for each of its places
def _of_suffix(name: str, use: UseName) -> Connector | None:
    for each in own().values():
        way: Use | None = getattr(each, use)
        if way is not None and name.endswith(way.suffixes):
            return each
    return None


def _listed(words: Sequence[str], last: str) -> str:
    *most, end = words
    return f"{', '.join(most)}{last}{end}" if most else end
