"""The log of a process: one entry a line, for machines or for people.

The only place that imports structlog. An entry has a time, a level, its process (worker, process),
its subject (component, partition), and a message in words; all formats hold the same entry.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ripple.control.secrets import hider
from ripple.control.telemetry.levels import LEVELS, Level, context_of, level_of
from ripple.control.telemetry.recent_lines import RecentLines
from ripple.control.telemetry.repeats import WITHIN_S, Repeats
from ripple.core.event_text import line_of
from ripple.core.extras import needed
from ripple.core.sexp import Sexp, dumps

with needed("cluster", "the log"):
    import structlog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping

    from ripple.control.assignment import Line
    from ripple.control.process_settings import LogSettings
    from ripple.core.events import Event

_ENTRY = ("level", "component", "message", "worker", "process", "partition", "timestamp_ns")


class Log:
    """The log of one process. Calls return at once; a line that cannot be written is no error."""

    def __init__(
        self,
        settings: LogSettings,
        write: Callable[[str], None],
        now_ns: Callable[[], int],
        *,
        environment: Mapping[str, str],
        is_terminal: bool = False,
        **who: str,
    ) -> None:
        """Write lines; now_ns: the wall clock. environment: its secrets are removed from lines.

        who: fields of each entry: worker, process, component.
        """
        form = settings.form
        if form == "auto":
            form = "text" if is_terminal else "json"
        self._level = LEVELS[settings.level]
        self._recent = RecentLines(who.get("process", ""), now_ns)
        self._now_ns = now_ns
        self._hidden = hider(environment)
        self._repeats = Repeats()
        self._entries = structlog.wrap_logger(
            _Writer(write),
            processors=[self._timed, self._shown_once, self._noted, _RENDERERS[form]],
            wrapper_class=structlog.make_filtering_bound_logger(self._level),
        ).bind(**{"component": "process", **who})

    @property
    def is_debug(self) -> bool:
        """Whether events of each batch are logged."""
        return self._level is Level.DEBUG

    def recent(self) -> tuple[Line, ...]:
        """Return the warnings and errors of the last seconds, oldest first."""
        return self._recent.recent()

    def say(self, message: str, level: Level = Level.INFO, **context: object) -> None:
        """Log a message. context: component, partition, and other fields."""
        shown = {
            name: self._hidden(value) if isinstance(value, str) else value
            for name, value in context.items()
        }
        self._entries.log(level, self._hidden(" ".join(message.split())), **shown)

    def emit(self, event: Event, message: str | None = None, **context: object) -> None:
        """Log an event; message: replaces its usual text. Skips events that are only counted."""
        level, component = level_of(event)
        if level < self._level:
            return
        numbers: Mapping[str, object] = {}
        text = message or line_of(event)
        if text is None:
            text, numbers = context_of(event)
        if text:
            self.say(text, level, component=component, **context, **numbers)

    def close(self) -> None:
        """Log how often suppressed lines were repeated."""
        self._say_repeats(float("inf"))

    def take_over(self) -> None:
        """Log the messages of libraries that log through ``logging``, from warnings on."""
        root = logging.getLogger()
        root.addHandler(_Handler(self))
        root.setLevel(logging.WARNING)

    def _timed(self, _: object, __: str, entry: MutableMapping[str, Any]) -> Any:
        entry["timestamp_ns"] = self._now_ns()
        return entry

    def _shown_once(self, _: object, level: str, entry: MutableMapping[str, Any]) -> Any:
        """Suppress frequent repetitions; first log how often expired ones were suppressed."""
        if self.is_debug:
            return entry
        now_s = entry["timestamp_ns"] / 1e9
        self._say_repeats(now_s)
        if not self._repeats.admits((entry["event"], level, entry.get("partition")), now_s):
            raise structlog.DropEvent
        return entry

    def _noted(self, _: object, level: str, entry: MutableMapping[str, Any]) -> Any:
        if level in _NOTED:
            text = f"{entry['event']} {entry.get('exception', '')}".rstrip()
            self._recent.note(_LEVEL_NAMES[level], text)
        return entry

    def _say_repeats(self, now_s: float) -> None:
        for (message, *_), times in self._repeats.over(now_s):
            often = "once" if times == 1 else f"{times} times"
            self._entries.info(f"said {often} more within {WITHIN_S:g} s: {message}")


class _Writer:
    """The writer of structlog, for all levels."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def msg(self, line: str) -> None:
        self._write(f"{line}\n")

    debug = info = warning = error = critical = log = msg


class _Handler(logging.Handler):
    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Log a library's record."""
        level = Level.ERROR if record.levelno >= logging.ERROR else Level.WARN
        context: dict[str, object] = {"component": record.name}
        if record.exc_info:
            context["exception"] = logging.Formatter().formatException(record.exc_info)
        self._log.say(record.getMessage(), level, **context)


def _json(_: object, level: str, entry: MutableMapping[str, Any]) -> str:
    said = {"time": _iso(entry.pop("timestamp_ns")), "level": _LEVEL_NAMES[level]}
    for name in ("worker", "process", "component", "partition"):
        if name in entry:
            said[name] = entry.pop(name)
    said |= {"message": entry.pop("event"), **entry}
    return json.dumps(said, ensure_ascii=False, default=str)


def _text(_: object, __: str, entry: MutableMapping[str, Any]) -> str:
    parts = [_iso(entry["timestamp_ns"])]
    if "process" in entry:
        parts.append(f"{entry['process']}:")
    message = entry["event"]
    if "partition" in entry and not message.startswith("partition "):
        parts.append(f"partition {entry['partition']}:")
    exception = entry.pop("exception", None)
    more = {name: value for name, value in entry.items() if name not in (*_ENTRY, "event")}
    parts += [message, *(f"{name}={value}" for name, value in more.items())]
    return " ".join(parts) + ("" if exception is None else f"\n{exception}")


def _sexp(_: object, level: str, entry: MutableMapping[str, Any]) -> str:
    worker = entry.get("worker")
    more = {
        name: value
        for name, value in entry.items()
        if name not in ("event", "worker", "component", "timestamp_ns")
    }
    fields: list[Sexp] = [
        ["level", _LEVEL_NAMES[level].capitalize()],
        ["timestamp_ns", str(entry["timestamp_ns"])],
        ["worker_id", [] if worker is None else [worker]],
        ["component", entry["component"]],
        ["message", entry["event"]],
        ["context", [[name, str(value)] for name, value in more.items()]],
    ]
    return dumps(fields)


_NOTED = {"warning", "error"}
_LEVEL_NAMES = {"debug": "debug", "info": "info", "warning": "warn", "error": "error"}
_RENDERERS = {"json": _json, "text": _text, "sexp": _sexp}


def _iso(at_ns: int) -> str:
    at = datetime.fromtimestamp(at_ns // 1_000_000 / 1000, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
