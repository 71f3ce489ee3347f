"""A connector's declaration: its scheme, the functions that open its URIs, and its promises."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ripple.core.frozen import frozen
from ripple.world.ports import INLINE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ripple.connectors.record_shape import RecordShape
    from ripple.model.pipeline.nodes import Output
    from ripple.model.pipeline.plan import Plan
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
    """One use of a connector's URIs.

    opens: the function that opens one, as ``package.module:attribute``; imported at first use.
    promise: the guarantee to users. on_stream: the same for a pipe, a device and ``-``; empty if
    none of them can be opened. suffixes: of files that are recognized without the scheme, for
    Ripple's own connectors alone. has_epochs: whether a sink uses ``Writing.epoch``, so that a
    replaced owner is fenced (docs/seals.md). has_parts: whether it uses ``part``.
    reached: of a sink, reads the owner's commit from outside: ``(path, Writing) -> Commit | None``,
    named as ``opens`` is; empty if that is impossible. Without a part in ``Writing`` the result
    covers all parts.
    looks: of a continued sink that is no group, raises as opening it would, with nothing changed,
    and returns the highest epoch of the part's owners, 0 for none: ``(path, Writing) -> int``;
    empty if that is unknown. reads: likewise, reads changes back while another owner writes:
    ``(path, Writing, mark) -> Iterator[(changes, the mark after them)]``, from a mark of its sinks
    on, None for all; empty if that is impossible. owners: of a sink with epochs, the highest of all
    parts, likewise.
    is_group: of a continued sink, whether outputs are committed together: it opens them as one,
    ``({output: path}, Grouping) -> ReadableGroup``. commit_interval_ms: of a continued sink, the
    default interval of commits. takes_events: of a sink, whether it takes rows without ``op``, each
    of which stays unchanged. has_keys: of a source, whether its records have keys beside their
    values, by which deletions name their rows. is_endless: of a source, whether it never ends,
    so that no run waits for its end. has_times: of a source, whether its times are nanoseconds
    already, in any declared form. is_alone: of a continued source, whether only one process can
    read it, the one with the recorded order.
    """

    opens: str
    promise: str
    suffixes: tuple[str, ...] = ()
    on_stream: str = ""
    has_epochs: bool = False
    has_parts: bool = False
    reached: str = ""
    looks: str = ""
    reads: str = ""
    owners: str = ""
    is_group: bool = False
    commit_interval_ms: int = 1000
    takes_events: bool = False
    has_keys: bool = False
    is_endless: bool = False
    has_times: bool = False
    is_alone: bool = False


@frozen(kw_only=True)
class Connector:
    """The uses of one scheme; None for unsupported ones.

    scheme: the text before the colon. form: of a URI, for people. Functions get the text after
    the colon unchanged:

    - source: ``(path, Reading) -> Inputs``, or a Source, for one reading, to its end;
    - sink: ``(path, Writing) -> Sink``, which is written anew, or appended to;
    - continued_source: ``(path, Reading) -> Inputs``, which a restarted run resumes at its cut;
    - continued_sink: ``(path, Writing) -> Sink``, which a restarted run resumes at its cut.

    path_of: from that text to the file or folder, so that no run writes to its source; None if
    there is none. may_read: of a source of several files without a folder of their own, from that
    text and a path to whether the source may read the file. claims: from a folder to whether it is
    the connector's own, and none of files for one source. within: of a source around another one,
    from that text to the other's URI. package: the distribution, as found by the registry.

    Functions for users, named as ``opens`` is; empty if there is none:
    settings: a dataclass of ripple.connectors.settings. check: ``path -> str``, which connects,
    and returns its findings in a few words; raises errors that name the remedy.
    discover: ``path -> Iterable[Stream]``, the readable streams.
    identity: ``path -> str``, equal for different spellings of the same target; if empty, its path
    or its text.
    lanes: ``path -> LaneHome``, topics through which stages hand records to each other.
    retries: ``(path, pipeline) -> Retrying``, which writes records of dead letters back to the
    source that they were read from.
    """

    scheme: str
    form: str
    source: Use | None = None
    sink: Use | None = None
    continued_source: Use | None = None
    continued_sink: Use | None = None
    path_of: Callable[[str], str | None] | None = None
    may_read: Callable[[str, str], bool] | None = None
    claims: Callable[[str], bool] | None = None
    within: Callable[[str], str] | None = None
    package: str = "ripple"
    settings: str = ""
    check: str = ""
    discover: str = ""
    lanes: str = ""
    retries: str = ""
    identity: str = ""


@frozen
class Reading:
    """The parameters of a source.

    name: of the input, for people and the engine. shape: of its records. batch_rows: the number of
    records in a batch; see Source. header: whether CSV begins with column names. follow: whether
    Inputs wait for more at the end. part: the partition of these inputs; None: all. executor: for
    blocking work of Inputs. one_shot: whether the run has no checkpoints: nothing retries but
    the source. whole: whether such a run takes all partitions at a URI, each as an input; else one
    of several must be named. needs_all: whether the records of a table that later ones replace
    matter, too, so that they must not be removed.
    """

    name: str
    shape: RecordShape
    batch_rows: int
    header: bool = False
    follow: bool = False
    part: Part | None = None
    executor: Executor = INLINE
    one_shot: bool = False
    whole: bool = False
    needs_all: bool = False


@frozen
class Writing:
    """The parameters of a sink.

    output: of the plan, which is written. header: whether CSV begins with column names, where its
    address does not say; None: a file does, a stream does not. epoch: of the partition's owner,
    which fences lower ones; None without owners. part: the partition of these changes; None if
    there is one.
    """

    plan: Plan
    output: Output
    header: bool | None = None
    epoch: int | None = None
    part: Part | None = None


@frozen
class Carried:
    """Lanes to the next stage that are committed with outputs, as additional ones.

    Each is a partition of a topic, written by one partition of a stage. place: the topic, created
    if missing. lanes: the topic's number of lanes. numbers: of the written ones, by their names in
    the group; each write has one column, of binary values.
    """

    place: str
    lanes: int
    numbers: Mapping[str, int]


class LaneHome(Protocol):
    """Topics through which stages may hand records to each other."""

    @property
    def name(self) -> str:
        """Their URI, for people."""

    def place(self, topic: str) -> str:
        """Return the place of a topic there."""

    def broker(self) -> Broker:
        """Return a connection, of the caller's own."""


@frozen
class Grouping:
    """The parameters of outputs that are committed together.

    part: the partition of these changes; None if there is one. stage: of that partition; None for
    the task that repartitions the source of a chain, the name of the source for one of several.
    source: of the pipeline, with offsets that may be committed with them. carried: lanes that are.
    waits: whether to wait during outages; else they end the run. divided_by: per output of the
    first stage the fields that divide its rows among the partitions, if known.
    """

    plan: Plan
    part: Part | None = None
    stage: int | str | None = 0
    source: str | None = None
    carried: Carried | None = None
    waits: bool = True
    divided_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
