"""Who is there: workers, their processes, and the code that they run."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ripple.control.assignment.errors import AssignmentError

SLOTS_MAX = 1024
ID_LENGTH_MAX = 64
# Of whatever else a worker says of itself, so that versions fit into an entry of their chain.
TEXT_LENGTH_MAX = 256
TEXTS_MAX = 1024

_ID = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Code:
    """What a worker would compute.

    protocol: of workers and coordinators among themselves. schemas: fingerprints by name, sorted.
    stages: their partitions by name, in order; 0 where the cluster says how many. ends: what tells
    its source, its outputs, its lanes and settings that all must have alike from others, by name.
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
    """A worker that asks to join, under a nonce that it uses for no other joining.

    addresses: ``host:port`` by purpose, sorted. processes: how many compute. inputs: how many
    partitions each input has, by name. store: what tells its store's cluster from others.
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
    starts: of the process in each slot, how often it was started again.
    is_leaving: it is given no more partitions, and those it has move away.
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
    """Return whose process it is."""
    return process.partition("/")[0]


def check_id(worker: str) -> None:
    """Raise AssignmentError unless a worker may be called so."""
    if len(worker) > ID_LENGTH_MAX or not _ID.fullmatch(worker):
        raise AssignmentError(
            f"{worker[:ID_LENGTH_MAX]!r} is no worker's id: use letters, digits, '.', '_' and "
            f"'-', at most {ID_LENGTH_MAX}"
        )
