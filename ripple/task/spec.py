"""The specification and the context of a task."""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING, Protocol, TypeGuard

from ripple.core.errors import InputError
from ripple.core.events import EventListener, no_listener
from ripple.core.frozen import frozen
from ripple.engine.machine import Engine
from ripple.engine.machine.divider import Divider
from ripple.model.pipeline.input_names import of_sources, source_of
from ripple.task.report import Report
from ripple.task.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from ripple.connectors.commit_group import CommitGroup
    from ripple.connectors.inputs import Inputs
    from ripple.engine.operators.division import Division
    from ripple.model.pipeline.plan import Plan
    from ripple.task.edges import Publisher
    from ripple.task.lanes import Lanes
    from ripple.task.replay_debts import ReplayDebts
    from ripple.task.tracing import Traces


class NotifyingInputs(Protocol):
    """Inputs that emit events, to ``emit``."""

    emit: EventListener


def is_notifying(inputs: object) -> TypeGuard[NotifyingInputs]:
    """Tell whether inputs emit events."""
    return hasattr(inputs, "emit")


@frozen
class TaskSpec:
    """The specification of a task over inputs.

    outputs: opened once no other owner can write. staged: whether to compute the plan's first stage
    alone. sends: publishes the state edge. lanes: the event edge to the next stage. engine: the
    class that computes. divisions: the known partitioners of the sources. received: the sources
    that other tasks read and repartition.
    """

    plan: Plan
    inputs: Inputs
    outputs: CommitGroup
    staged: bool = False
    sends: Publisher | None = None
    lanes: Lanes | None = None
    engine: type[Engine] = Engine
    divisions: tuple[Division, ...] = ()
    received: Collection[str] = ()

    @property
    def is_awaited(self) -> bool:
        """Whether rows of a later stage may wait for the watermark here."""
        if issubclass(self.engine, Divider):
            return True
        return self.staged and any(fold.window is not None for fold in self.plan.event_folds)

    @property
    def is_divided(self) -> bool:
        """Whether this task divides records anew, or takes such records."""
        return bool(self.received) or issubclass(self.engine, Divider)

    def begin(self, emit: EventListener) -> None:
        """Let the inputs emit events.

        Raises InputError where rows would depend on the order in which inputs were read.
        """
        read = Counter(source_of(self.plan, name).name for name in of_sources(self.inputs.names))
        feeds = [
            sum(read[source.name] for source in self.plan.sources_of(fold.name))
            for fold in self.plan.partial_folds
        ]
        if any(inputs > 1 for inputs in feeds):
            raise InputError(
                "a window that shows partial results by OnCount or OnInterval cannot be restored "
                "over several partitions: what it shows depends on the order of reading; read one, "
                "as in log:DIR/TOPIC/0"
            )
        if is_notifying(self.inputs):
            self.inputs.emit = emit


class IntakeGate(Protocol):
    """Says when there is too much at work to take in more."""

    async def admits(self) -> bool:
        """Return whether to take in more, after a wait where less is to be taken in.

        If not, the caller does due work and asks again: this waits a moment then, too.
        """
        ...


@frozen(eq=False)
class TaskContext:
    """The context of a task.

    emit: is given events. stop: asked between two batches whether to end in good order; to
    interrupt a wait for input, wake the task after setting it. watch: called after each batch of
    inputs. intake: asked before each batch, None for no limit. traces: of the batches, None without
    tracing. debts: of all partitions of the process, None for a task by itself. report: of this
    task alone.
    """

    settings: Settings = field(default_factory=Settings)
    emit: EventListener = no_listener
    stop: Callable[[], bool] = lambda: False
    watch: Callable[[Engine, Report], None] = lambda _, __: None
    intake: IntakeGate | None = None
    traces: Traces | None = None
    debts: ReplayDebts | None = None
    report: Report = field(default_factory=Report)
