"""The assignment: ownership of partitions, as a chain of versions in the store.

Coordinators propose versions, workers read and follow them; no process's memory, and no message,
decides anything else.

epoch     the fencing numbers that follow from versions
member    workers, their processes and their code
version   one version of the assignment, as a value
stage_names  names of stages, and which of them reads a source
report    a member's report with a heartbeat
bounds    bounds of messages between processes
rules     invariants of a version, and of one after another
form      a version as JSON
chain     the versions in a store
generations  clusters of other code in the same store, and which of them serves
founding  the cluster's name and key, in the same store
errors    AssignmentError
"""

from __future__ import annotations

from ripple.control.assignment.chain import AssignmentChain
from ripple.control.assignment.epoch import ATTEMPTS_MAX, VERSION_MAX, epoch_of, since_of
from ripple.control.assignment.errors import AssignmentError
from ripple.control.assignment.member import Candidate, Code, Member, process_of, worker_of
from ripple.control.assignment.report import (
    LINES_MAX,
    Alert,
    Backpressure,
    Demand,
    Follower,
    Level,
    Line,
    MoveFailed,
    Report,
)
from ripple.control.assignment.version import Assignment, Phase, Pin, Share, Stage, empty

__all__ = [
    "ATTEMPTS_MAX",
    "LINES_MAX",
    "VERSION_MAX",
    "Alert",
    "Assignment",
    "AssignmentChain",
    "AssignmentError",
    "Backpressure",
    "Candidate",
    "Code",
    "Demand",
    "Follower",
    "Level",
    "Line",
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
