"""OAuth tokens for brokers: from a file, or from an issuer."""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.request
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from ripple.connectors.kafka.settings import TokenSource
from ripple.core.errors import RippleError
from ripple.world.http import ask

if TYPE_CHECKING:
    from typing import Any

CALL_S = 10.0
# A token is used for this part of its time, so that none expires on its way. When it does it says
# in whole seconds, so that it may be good for a second less than its issuer says.
USED_PART = 0.8
WHOLE_S = 1.0
EXPIRES_S = 300.0  # of an issuer that does not say
_ANSWER_BYTES_MAX = 1 << 20


class TokenError(RippleError):
    """There is no token; the message holds no secret."""


class Tokens:
    """Gives a token that is valid now. It waits, and may be asked by several threads."""

    def __init__(self, source: TokenSource) -> None:
        self._source = source
        self._context = source.context()
        self._lock = Lock()
        self._held = ""
        self._until_s = self._ends_s = 0.0

    def token(self) -> str:
        """Return a token: the file's present one, or the issuer's. Raises TokenError."""
        if self._source.file:
            return self._read()
        with self._lock:
            began_s = time.monotonic()
            if began_s >= self._until_s:
                try:
                    self._held, seconds = self._issued()
                except TokenError:
                    if time.monotonic() >= self._ends_s:
                        raise
                    return self._held  # it is good for a while yet
                good_s = max(0.0, seconds - WHOLE_S)
                self._until_s, self._ends_s = began_s + USED_PART * good_s, began_s + good_s
            return self._held

    def _read(self) -> str:
        path = self._source.file
        try:
            found = Path(path).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise TokenError(f"kafka_sasl_token_file: cannot read {path}: {error}") from error
        if not found:
            raise TokenError(f"kafka_sasl_token_file: {path} holds no token")
        return found

    def _issued(self) -> tuple[str, float]:
        """Ask for a token by the client's own credentials (RFC 6749, 4.4)."""
        source = self._source
        asked = {"grant_type": "client_credentials"} | (
            {"scope": source.scope} if source.scope else {}
        )
        user = f"{quote(source.client_id, safe='')}:{quote(source.client_secret, safe='')}"
        request = urllib.request.Request(  # noqa: S310 - the settings allow http and https alone
            source.url,
            urlencode(asked).encode(),
            {
                "Authorization": f"Basic {base64.b64encode(user.encode()).decode()}",
                "Accept": "application/json",
            },
        )
        try:
            found: Any = json.loads(ask(request, CALL_S, _ANSWER_BYTES_MAX, self._context))
            return str(found["access_token"]), float(found.get("expires_in", EXPIRES_S))
        except urllib.error.HTTPError as error:
            with error:
                why = f"HTTP {error.code} {error.reason}"
        except OSError as error:
            why = str(getattr(error, "reason", error))
        except (ValueError, KeyError, TypeError, AttributeError):
            why = "it answers without a token"
        raise TokenError(f"no token for Kafka from {source.url}: {why}")


@lru_cache(maxsize=4)
def tokens_of(source: TokenSource) -> Tokens:
    """Return the tokens of a source: one object for all connections of a process."""
    return Tokens(source)
