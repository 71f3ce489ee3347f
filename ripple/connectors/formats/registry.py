"""A schema registry with Confluent's API: schemas by the ids in values."""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.request
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from ripple.connectors.formats.references import whole
from ripple.core.errors import RippleError, SchemaError
from ripple.world.http import ask
from ripple.world.pauses import doubling

if TYPE_CHECKING:
    import ssl

SCHEMAS_MAX = 1000
REFERENCES_MAX = 100
CALL_S = 10.0
PATIENCE_S = 60.0
# Of one that has never answered, whose address is more likely wrong.
FIRST_PATIENCE_S = 5.0
PAUSE_S, PAUSE_S_MAX = 0.1, 5.0
_ANSWER_BYTES_MAX = 16 << 20
_NOT_FOUND = 404
_CONTENT = "application/vnd.schemaregistry.v1+json"


class RegistryError(RippleError):
    """The registry does not answer, or not as it should."""


class Registered(NamedTuple):
    """A schema. form: ``AVRO``, ``JSON`` or ``PROTOBUF``.

    text: the document, with its references in it.
    """

    id: int
    form: str
    text: str


class Registry:
    """Asks a registry, and blocks. Schemas never change, so they are cached.

    Invariant: the cache holds at most SCHEMAS_MAX, the least recently used leave; a missing id is
    asked for again each time, since it may be added later. Several threads may call.
    """

    def __init__(
        self, url: str, *, user: str = "", password: str = "", context: ssl.SSLContext | None = None
    ) -> None:
        """Ask nothing yet. context: how TLS is done, if it is."""
        self.url = url.rstrip("/")
        self._context = context
        self._headers = {"Accept": _CONTENT, "Content-Type": _CONTENT}
        if user:
            shown = base64.b64encode(f"{user}:{password}".encode()).decode()
            self._headers["Authorization"] = f"Basic {shown}"
        self._known: OrderedDict[int, Registered] = OrderedDict()
        self._ids: dict[tuple[str, str, str], int] = {}
        self._lock = Lock()  # of the cache
        self._has_answered = False

    def schema(self, number: int) -> Registered | None:
        """Return the schema with an id, None if there is none. Raises RegistryError."""
        with self._lock:
            known = self._known.get(number)
            if known is not None:
                self._known.move_to_end(number)
                return known
        found = self._ask(
            "GET", f"/schemas/ids/{number}"
        )  # callers with a cached schema do not wait for it
        if found is None:
            return None
        known = self._registered(number, found)
        with self._lock:
            self._known[number] = known
            if len(self._known) > SCHEMAS_MAX:
                self._known.popitem(last=False)
        return known

    def latest(self, subject: str) -> Registered | None:
        """Return the newest schema of a subject, None if it has none. Raises RegistryError."""
        found = self._ask("GET", f"/subjects/{quote(subject, safe='')}/versions/latest")
        return None if found is None else self._registered(found.get("id"), found)

    def register(self, subject: str, form: str, text: str) -> int:
        """Return the id of a schema that is now one of the subject's. Raises RegistryError."""
        asked = subject, form, text
        if asked in self._ids:
            return self._ids[asked]
        body = {"schema": text, "schemaType": form}
        found = self._ask("POST", f"/subjects/{quote(subject, safe='')}/versions", body)
        if found is None or not isinstance(found.get("id"), int):
            raise RegistryError(f"{self.url} did not say the id of the schema of {subject!r}")
        self._ids[asked] = int(found["id"])
        return self._ids[asked]

    def _registered(self, number: Any, found: dict[str, Any]) -> Registered:
        text, form = found.get("schema"), found.get("schemaType") or "AVRO"
        if not isinstance(text, str) or not isinstance(number, int):
            raise RegistryError(f"{self.url}: what it says of schema {number} is no schema")
        others: dict[str, str] = {}
        self._collect(number, found.get("references"), others)
        try:
            return Registered(number, form, whole(form, text, others))
        except SchemaError as error:
            raise RegistryError(f"{self.url}: schema {number}: {error}") from error

    def _collect(self, number: int, references: Any, others: dict[str, str]) -> None:
        """Ask for all references of a schema, and theirs, by name."""
        for one in references or ():
            try:
                name, subject, version = one["name"], one["subject"], int(one["version"])
            except (TypeError, KeyError, ValueError) as error:
                raise RegistryError(
                    f"{self.url}: what schema {number} refers to is no reference: {one!r}"
                ) from error
            if name in others:
                continue
            if len(others) >= REFERENCES_MAX:
                raise RegistryError(
                    f"{self.url}: schema {number} refers to more than {REFERENCES_MAX} others"
                )
            path = f"/subjects/{quote(str(subject), safe='')}/versions/{version}"
            found = self._ask("GET", path)
            if found is None or not isinstance(found.get("schema"), str):
                raise RegistryError(
                    f"{self.url}: schema {number} refers to version {version} of subject "
                    f"{subject!r}, which is not there"
                )
            others[name] = found["schema"]
            self._collect(number, found.get("references"), others)

    def _ask(self, method: str, path: str, body: object = None) -> dict[str, Any] | None:
        """Return the answer, None if there is none; asks again during an outage."""
        patience_s = PATIENCE_S if self._has_answered else FIRST_PATIENCE_S
        until, pauses_s = time.monotonic() + patience_s, doubling(PAUSE_S, PAUSE_S_MAX)
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(  # noqa: S310 - the settings allow http and https alone
            self.url + path, data, self._headers, method=method
        )
        away: BaseException | None = None
        while True:
            try:
                found = json.loads(ask(asked, CALL_S, _ANSWER_BYTES_MAX, self._context))
            except urllib.error.HTTPError as error:
                away, self._has_answered = error, True
                with error:
                    if error.code == _NOT_FOUND and method == "GET":
                        return None
                    why = f"HTTP {error.code}: {_reason_of(error)}"
                    if error.code < 500:
                        raise RegistryError(f"{self.url}{path}: {why}") from error
            except ValueError as error:
                raise RegistryError(f"{self.url}{path}: the answer is no JSON") from error
            except OSError as error:
                reason = getattr(error, "reason", error)
                why, away = str(reason), reason if isinstance(reason, BaseException) else error
            else:
                if not isinstance(found, dict):
                    raise RegistryError(f"{self.url}{path}: the answer is no JSON object")
                self._has_answered = True
                return found
            pause_s = next(pauses_s)
            if time.monotonic() + pause_s > until:
                raise RegistryError(f"{self.url} does not answer: {why}") from away
            time.sleep(pause_s)


def _reason_of(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read(1 << 16))["message"])
    except (ValueError, KeyError, TypeError, OSError):
        return error.reason
