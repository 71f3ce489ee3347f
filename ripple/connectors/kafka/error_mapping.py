"""Brokers' error codes as errors of the port, and which of them are transient."""

from __future__ import annotations

from ripple.core.extras import needed
from ripple.world.broker import BrokerError, FencedError, NoTopicError, TooLargeError

with needed("kafka", "a kafka: URI"):
    from aiokafka import errors

# Transient errors: a partition's leader changes, or a broker is unavailable.
PASSING = (
    errors.LeaderNotAvailableError,
    errors.NotLeaderForPartitionError,
    errors.UnknownTopicOrPartitionError,
    errors.ReplicaNotAvailableError,
    errors.RequestTimedOutError,
    errors.NodeNotReadyError,
    errors.KafkaConnectionError,
    errors.StaleMetadata,
    errors.CorrelationIdError,
)
# By number: what aiokafka has no name for (kafka.apache.org/protocol#protocol_error_codes).
# Storage, leader epochs, offset not available yet, ids of topics: learned anew, a name tells more.
_PASSING_CODES = {56, 74, 75, 76, 78, 100, 103}
OUT_OF_RANGE = errors.OffsetOutOfRangeError.errno
TWICE = errors.DuplicateSequenceNumber.errno
THERE = errors.TopicAlreadyExistsError.errno
NO_TOPIC = errors.UnknownTopicOrPartitionError.errno
_TOO_LARGE = {errors.MessageSizeTooLargeError.errno, errors.RecordListTooLargeError.errno}
# A newer producer, an id that was given anew, no transaction where one was: ended from outside.
_FENCED = {47, 48, 49, 90}
_ENDING = errors.ConcurrentTransactions.errno
# The transaction before is being marked, or the coordinator moves: the request was not done.
_NOT_YET = {
    _ENDING,
    errors.CoordinatorLoadInProgressError.errno,
    errors.CoordinatorNotAvailableError.errno,
    errors.NotCoordinatorError.errno,
}


class EndingError(BrokerError):
    """The transaction before is being ended: the same broker is to be asked again soon."""


def words(error: Exception) -> str:
    """Return why something was not asked, or not answered."""
    if isinstance(error, errors.NodeNotReadyError) and error.args:
        return str(error.args[0])
    return str(error) or type(error).__name__


def is_passing(code: int) -> bool:
    """Whether an error of a partition goes away when it is asked again, perhaps elsewhere."""
    return code in _PASSING_CODES or issubclass(errors.for_code(code), PASSING)


def passes(code: int) -> bool:
    """Whether nothing was done, and it may be asked again."""
    return code in _NOT_YET or is_passing(code)


def refusal(code: int, what: str) -> BrokerError:
    """Return an error of the broker as ours."""
    kind = errors.for_code(code)
    if code in _FENCED:
        return FencedError(
            f"{what}: there is a newer producer, or the transaction has ended ({kind.__name__})"
        )
    if code == _ENDING:
        return EndingError(f"{what}: {kind.__name__} ({code}): {kind.description}", done=False)
    if code in _TOO_LARGE:
        return TooLargeError(f"{what}: the broker takes no batch that large (max.message.bytes)")
    if code == NO_TOPIC:
        return NoTopicError(f"there is no {what}")
    if kind in (
        errors.TopicAuthorizationFailedError,
        errors.GroupAuthorizationFailedError,
        errors.TransactionalIdAuthorizationFailed,
        errors.ClusterAuthorizationFailedError,
    ):
        return BrokerError(f"{what}: the broker does not let this user do so", done=False)
    return BrokerError(f"{what}: {kind.__name__} ({code}): {kind.description}", done=False)
