"""Members: workers, their processes, and the code that they run."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ripple.control.assignment.errors import AssignmentError

SLOTS_MAX = 1024
ID_LENGTH_MAX = 64
# Of a worker's other texts, so that versions fit into an entry of their chain.
TEXT_LENGTH_MAX = 256
TEXTS_MAX = 1024

_ID = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Code:
    """Code and settings of a worker, which all members share.

    protocol: of workers and coordinators among themselves. schemas: fingerprints by name, sorted.
    stages: their partitions by name, in order; 0: as the cluster is configured. ends: identifiers
    of source, outputs, lanes and settings that all must share, by name.
    """

    pipeline: str
    plan_hash: str
    topology_hash: str
    protocol: int
    schemas: tuple[tuple[str, str], ...] = ()
    stages: tuple[tuple[str, int], ...] = (("main", 0),)
    ends: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A worker that asks to join, under a nonce that it uses only once.

    addresses: ``host:port`` by purpose, sorted. processes: number of engine processes. inputs: how
    many partitions each input has, by name. store: identity of its store's cluster.
    """

    id: str
    nonce: str
    addresses: tuple[tuple[str, str], ...] = ()
    processes: int = 1
    code: Code
    inputs: tuple[tuple[str, int], ...] = ()
    store: str = ""

    def __post_init__(self) -> None:
        check_id(self.id)
        if not self.nonce:
            raise AssignmentError(f"worker {self.id} asks to join without a nonce")
        if not 1 <= self.processes <= SLOTS_MAX:
            raise AssignmentError(
                f"worker {self.id} has {self.processes} processes, not 1 to {SLOTS_MAX}"
            )
        code = self.code
        pairs = (*self.addresses, *code.schemas, *code.stages, *code.ends, *self.inputs)
        texts = [self.nonce, self.store, code.pipeline, code.plan_hash, code.topology_hash]
        texts += [text for pair in pairs for text in pair if isinstance(text, str)]
        if len(texts) > TEXTS_MAX or max(map(len, texts)) > TEXT_LENGTH_MAX:
            raise AssignmentError(
                f"worker {self.id} says too much of itself: more than {TEXTS_MAX} names, or one of "
                f"more than {TEXT_LENGTH_MAX} characters"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A worker that belongs to the cluster.

    incarnation: the version that let it in, so that no later one has the same.
    starts: of the process in each slot, how often it was restarted.
    is_leaving: it gets no more partitions, and those it has move away.
    """

    id: str
    incarnation: int
    nonce: str
    addresses: tuple[tuple[str, str], ...]
    starts: tuple[int, ...]
    code: Code
    is_leaving: bool = False

    @property
    def processes(self) -> tuple[str, ...]:
        """The names of its processes: they own partitions."""
        return tuple(process_of(self.id, slot) for slot in range(len(self.starts)))


def process_of(worker: str, slot: int) -> str:
    """Return the name of the process in a worker's slot."""
    return f"{worker}/{slot}"


def worker_of(process: str) -> str:
    """Return the worker of a process."""
    return process.partition("/")[0]


def check_id(worker: str) -> None:
    """Raise AssignmentError unless this is a valid id of a worker."""
    if len(worker) > ID_LENGTH_MAX or not _ID.fullmatch(worker):
        raise AssignmentError(
            f"{worker[:ID_LENGTH_MAX]!r} is no worker's id: use letters, digits, '.', '_' and "
            f"'-', at most {ID_LENGTH_MAX}"
        )
