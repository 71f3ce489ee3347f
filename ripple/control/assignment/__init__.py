"""Who owns which partition, as the chain of assignments in the store says it.

Coordinators propose its versions, workers read and obey them; nobody's memory, and no message,
decides anything else.

epoch     the fencing numbers that follow from versions
member    who is there, and with what code
version   one version of the assignment, as a value
report    what a member says of itself
rules     what a version must be, and what may follow it
form      a version as JSON
chain     the versions in a store
founding  the cluster's name and key, beside them
"""

from __future__ import annotations

from ripple.control.assignment.chain import AssignmentChain
from ripple.control.assignment.epoch import ATTEMPTS_MAX, VERSION_MAX, epoch_of, since_of
from ripple.control.assignment.errors import AssignmentError
from ripple.control.assignment.member import Candidate, Code, Member, process_of, worker_of
from ripple.control.assignment.report import (
    Alert,
    Backpressure,
    Follower,
    Level,
    MoveFailed,
    Report,
)
from ripple.control.assignment.version import Assignment, Phase, Pin, Share, Stage, empty

__all__ = [
    "ATTEMPTS_MAX",
    "VERSION_MAX",
    "Alert",
    "Assignment",
    "AssignmentChain",
    "AssignmentError",
    "Backpressure",
    "Candidate",
    "Code",
    "Follower",
    "Level",
    "Member",
    "MoveFailed",
    "Phase",
    "Pin",
    "Report",
    "Share",
    "Stage",
    "empty",
    "epoch_of",
    "process_of",
    "since_of",
    "worker_of",
]
