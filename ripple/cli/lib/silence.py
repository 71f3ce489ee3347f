"""Recognizes errors which mean that a server does not answer, of all clients in use."""

from __future__ import annotations

import errno
import socket
import ssl

# By name: none of these libraries is imported for this, and none need be installed.
_NAMES = {
    "aiokafka.errors.KafkaTimeoutError",
    "aiokafka.errors.RequestTimedOutError",
    "nats.errors.NoServersError",
    "nats.errors.TimeoutError",
    "redis.exceptions.TimeoutError",
}
_NUMBERS = {errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ETIMEDOUT}
# Signs that a token was missing, not a server.
_NO_TOKEN = ("kafka_sasl_token_file", ": HTTP ", "answers without a token")
# Classes of all connection errors, and the words in them that show that a server answered.
_ALL = {
    "aiokafka.errors.KafkaConnectionError",
    "botocore.exceptions.ConnectionError",
    "botocore.exceptions.HTTPClientError",
    "psycopg.OperationalError",
    "redis.exceptions.ConnectionError",
}
_ANSWERED = ("FATAL", "SSL", "SASL", "certificate", "no password", *_NO_TOKEN)
# Errors of servers that answered.
_ANSWERS = {
    "redis.exceptions.AuthenticationError",
    "ripple.spark.session.SparkJobError",  # a JVM of ours is no address
    "ripple.storage.store.errors.StoreRefusedError",
}
_CAUSES_MAX = 20


def is_silence(error: BaseException) -> bool:
    """Return whether an error, or one of its causes, means that an address does not answer."""
    found = False
    one: BaseException | None = error
    for _ in range(_CAUSES_MAX):
        if one is None:
            break
        names = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(one).__mro__}
        if isinstance(one, ssl.SSLError) or names & _ANSWERS:
            return False
        found = found or _is(one, names, said=str(error))
        one = one.__cause__
    return found


def _is(error: BaseException, names: set[str], said: str) -> bool:
    if names & _ALL:
        return not any(word in said for word in _ANSWERED)
    if isinstance(error, ConnectionError | TimeoutError | socket.gaierror) or names & _NAMES:
        return True
    return isinstance(error, OSError) and error.errno in _NUMBERS
