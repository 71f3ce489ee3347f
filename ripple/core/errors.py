"""Every error that Ripple raises on purpose: the cause, the value seen, the way out."""

from __future__ import annotations

import errno


class RippleError(Exception):
    """The root of Ripple's own errors."""


class PlanError(RippleError):
    """A pipeline cannot be built as written; the message names the step and the remedy."""


class SchemaError(RippleError):
    """A type cannot be expressed, or data does not have the declared type; names the field."""


class InputError(RippleError):
    """An input cannot be read, or a record is malformed and the run is strict."""


class InputAwayError(InputError):
    """An input cannot be read now and may come back by itself: a server that is away, a right."""


class OutputError(RippleError):
    """A sink cannot be written."""


class OutputAwayError(OutputError):
    """A sink cannot commit now, and may soon: its server is away. The commit may be repeated."""


class ConnectorError(RippleError):
    """A package's connector cannot be used; names the package."""


class LostRecordsWarning(UserWarning):
    """Records of a run did not count, or results could not be computed. It comes once.

    The records were rejected, or came too late.
    """


class GraphError(RippleError):
    """The graph was used in a way it forbids; the message names the nodes. Nothing was changed."""


class NodeError(RippleError):
    """A user's function raised inside the graph; the message names the node.

    The graph stays consistent: values before the failure are readable and the next stabilize
    retries. The original exception is the ``__cause__``.
    """


class DeltaError(RippleError):
    """A delta does not fit the value or table that it is applied to; nothing was changed."""


class LimitError(RippleError):
    """A named limit was reached; the message names the setting to change."""


# Exhausted disk space, quotas, memory and file descriptors.
_USED_UP = {errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EMFILE, errno.ENFILE}


def is_of_machine(error: BaseException | None) -> bool:
    """Return whether an error, or its cause, is a fault of the machine, or an exit.

    It does not count against a record. Faults of the machine are exhausted memory, disk space and
    file descriptors. A recursion that is too deep depends on the record.
    """
    if isinstance(error, MemoryError | SystemExit) or is_used_up(error):
        return True
    return error is not None and is_of_machine(error.__cause__)


def is_used_up(error: BaseException | None) -> bool:
    """Return whether an error, or its cause, is an OSError for an exhausted resource.

    It never counts against a record, however often it is repeated.
    """
    if isinstance(error, OSError):
        return error.errno in _USED_UP
    return error is not None and is_used_up(error.__cause__)
