"""What a connector says of itself: which places are its own, what opens them, what it promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from ripple.core.frozen import frozen
from ripple.world.ports import INLINE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ripple.connectors.record_shape import RecordShape
    from ripple.model.pipeline.plan import Output, Plan
    from ripple.world.broker import Broker
    from ripple.world.ports import Executor


class Part(NamedTuple):
    """Partition ``number``, from 0, of the ``of`` that a pipeline's first stage has.

    Partition i of an input belongs to part i mod ``of``.
    """

    number: int
    of: int


@frozen
class Use:
    """One of the things that a connector's places are good for.

    opens: what opens one, as ``package.module:attribute``; it is imported when it is first wanted.
    promise: what a user may rely on. on_stream: the same of a pipe, a device and ``-``; empty if
    the place can be none of them. suffixes: of files that are known without the scheme; only
    Ripple's own connectors are asked. has_epochs: whether a sink goes by ``Writing.epoch``, so that
    nothing counts of an owner that was replaced (docs/seals.md). has_parts: whether it goes by the
    ``part`` that it is asked for. reached: of a sink, what tells from outside what its owner has
    committed: ``(path, Writing) -> Commit | None``, as ``opens`` names it; empty if nothing does.
    Without a part in ``Writing`` that is what all parts have, together.
    whole: of a source, what reads all partitions of a place that has several, up to their present
    ends, and never waits: ``(path, Reading) -> Inputs | None``, None where there is one; empty
    where ``opens`` reads all there is. looks: of a continued sink that is no group, what raises as
    opening it would, with nothing changed, and returns the highest epoch that an owner of the part
    had, 0 for none: ``(path, Writing) -> int``; empty where nothing can be told. owners: of a sink
    with epochs, the highest of all parts, likewise.
    is_group: of a continued sink, whether outputs are committed together: it opens them as one,
    ``({output: path}, Grouping) -> ReadableGroup``. commit_interval_ms: of a continued sink, how
    often it is committed where nobody says.
    """

    opens: str
    promise: str
    suffixes: tuple[str, ...] = ()
    on_stream: str = ""
    has_epochs: bool = False
    has_parts: bool = False
    reached: str = ""
    whole: str = ""
    looks: str = ""
    owners: str = ""
    is_group: bool = False
    commit_interval_ms: int = 1000


@frozen(kw_only=True)
class Connector:
    """One kind of place, and how it is used; None where it cannot be.

    scheme: what stands before the colon. form: a place as people write it. What opens a use takes
    the text behind the colon as it was given:

    - source: ``(path, Reading) -> Source``, which is read once, to its end;
    - sink: ``(path, Writing) -> Sink``, which is written anew, or appended to;
    - continued_source: ``(path, Reading) -> Inputs``, which a restarted run reads on from its cut;
    - continued_sink: ``(path, Writing) -> Sink``, which a restarted run writes on from its cut.

    path_of: from that text to the file or folder, so that no run writes what it reads; None where
    there is none. package: whose it is, as the registry has found out.

    What people ask of it, named as what opens a use is; empty where it has nothing to say.
    settings: a dataclass of ripple.connectors.settings. check: ``path -> str``, which connects,
    and returns what is there in a few words; raises what is wrong and how it is put right.
    discover: ``path -> Iterable[Stream]``, what can be read there.
    identity: ``path -> str``, what tells the place from any other, however it is said; where it is
    empty, its path or its text does.
    lanes: ``path -> LaneHome``, topics through which stages may hand records to each other.
    retries: ``(path, pipeline) -> Retrying``, where records of dead letters that were read from
    such a place are written again.
    """

    scheme: str
    form: str
    source: Use | None = None
    sink: Use | None = None
    continued_source: Use | None = None
    continued_sink: Use | None = None
    path_of: Callable[[str], str | None] | None = None
    package: str = "ripple"
    settings: str = ""
    check: str = ""
    discover: str = ""
    lanes: str = ""
    retries: str = ""
    identity: str = ""


@frozen
class Reading:
    """What a source is asked for.

    name: of the input, for people and the engine. shape: what its records must be. batch_rows: how
    many records a batch has; see Source. header: whether CSV names its columns first. follow:
    whether Inputs wait for more where nothing is there yet. part: whose inputs these are; None:
    all. executor: where Inputs do what may take long.
    """

    name: str
    shape: RecordShape
    batch_rows: int
    header: bool = False
    follow: bool = False
    part: Part | None = None
    executor: Executor = INLINE


@frozen
class Writing:
    """What a sink is asked for.

    output: of the plan, whose changes come. header: whether CSV begins with the names of columns.
    epoch: of the partition's owner, who takes over from those of lower ones; None without owners.
    part: which partition's changes these are; None where there is one.
    """

    plan: Plan
    output: Output
    header: bool = False
    epoch: int | None = None
    part: Part | None = None


@frozen
class Carried:
    """Lanes to the next stage that are committed with outputs, as more of them.

    Each is a partition of a topic that one partition of a stage writes. place: of the topic, which
    is made if there is none. lanes: how many the topic has. numbers: of those that are written, by
    the names that they have beside the outputs; what is written has one column, of binary values.
    """

    place: str
    lanes: int
    numbers: Mapping[str, int]


class LaneHome(Protocol):
    """Topics through which stages may hand records to each other."""

    @property
    def name(self) -> str:
        """Where they are, for people."""

    def place(self, topic: str) -> str:
        """Return the place of a topic there."""

    def broker(self) -> Broker:
        """Return a connection, of the caller's own."""


@frozen
class Grouping:
    """What outputs that are committed together are asked for.

    part: which partition's changes these are; None where there is one. stage: whose partition it
    is; None of who divides the records of the source anew. source: the place that the pipeline
    reads, whose offsets may be committed with them. carried: lanes that are. waits: whether what
    may come back by itself is waited for; else it ends the run.
    """

    plan: Plan
    part: Part | None = None
    stage: int | None = 0
    source: str | None = None
    carried: Carried | None = None
    waits: bool = True
