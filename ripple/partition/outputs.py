"""The sinks of a life: each is written from where its data end, and not a cut earlier."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ripple import cut as cuts
from ripple.connectors.contract import Commit, CutSink
from ripple.cut import Cut
from ripple.engine.snapshot import SnapshotError

if TYPE_CHECKING:
    from ripple.engine import Changes, Engine


class Outputs:
    """The sinks by output.

    Invariant: a sink is muted exactly until the engine has come to the cut that the sink holds;
    then the digest of its table must be the one that it recorded there.
    """

    def __init__(
        self, sinks: Mapping[str, CutSink], start: Cut, guards: Callable[[str], bool]
    ) -> None:
        """Take over sinks that were opened. start: the cut of one that holds nothing.

        Raises InputError for a sink that was written from other inputs.
        """
        self._sinks = sinks
        self._guards = guards
        for sink in sinks.values():
            if sink.committed is not None:
                cuts.check_inputs(sink.committed.cut, start, sink.name)
        nothing = Commit(start, "")
        self._muted = {
            name: sink.committed or nothing for name, sink in sinks.items() if sink.records_cut
        }
        self._unfinished = [sink.unfinished for sink in sinks.values() if sink.unfinished]
        self._changed: frozenset[str] = frozenset()
        self.rows_out = 0

    @property
    def stops(self) -> list[Cut]:
        """The cuts that a replay must come to one after the other, at least."""
        return cuts.in_order([*(commit.cut for commit in self._muted.values()), *self._unfinished])

    @property
    def is_behind(self) -> bool:
        """Whether a sink is written what comes next, while others may have it."""
        return any(name not in self._muted for name in self._sinks)

    @property
    def is_unfinished(self) -> bool:
        """Whether a sink that is not muted holds a part of a cut, and cannot be committed."""
        return any(sink.unfinished for name, sink in self._sinks.items() if name not in self._muted)

    def accepts(self, cut: Cut) -> bool:
        """Return whether an engine at ``cut`` can go on to what every sink lacks."""
        if not self._guards("checkpoint_behind_sinks"):
            return True
        return all(cuts.is_within(cut, commit.cut) for commit in self._muted.values())

    def begin(self, engine: Engine, changed: frozenset[str]) -> None:
        """Unmute the sinks that hold what ``engine``, just restored or made, has reached.

        changed: outputs whose definition is not that of their recorded digest. Raises as ``write``.
        """
        self._changed = changed
        self._unmute(engine)

    def write(self, changes: Changes, engine: Engine) -> None:
        """Give each sink the changes that it lacks.

        Raises SnapshotError when a table is not what its sink has recorded.
        """
        digests = engine.digests
        for name, rows in changes.outputs.items():
            sink = self._sinks.get(name)
            if sink is None or (name in self._muted and self._guards("muted_replay")):
                continue
            if not rows.num_rows and sink.unfinished not in (None, changes.cut):
                continue
            self.rows_out += rows.num_rows
            sink.write(rows, Commit(changes.cut, digests[name]))
        if self._muted:
            self._unmute(engine)

    def _unmute(self, engine: Engine) -> None:
        for name, commit in list(self._muted.items()):
            if dict(commit.cut) != engine.cut:
                continue
            del self._muted[name]
            found = engine.digests[name]
            if commit.digest in ("", found) or not self._guards("digest_check"):
                continue
            if name not in self._changed:
                raise SnapshotError(
                    f"output {name!r} at {cuts.text(commit.cut)}: the state that was restored has "
                    f"digest {found}, but {self._sinks[name].name} recorded {commit.digest}: the "
                    "inputs, the checkpoint or the code are not those that wrote it. Nothing was "
                    "written; if the code was changed, --rebuild says so"
                )
            # In one piece: a sink takes all of a cut at once.
            for batch in engine.table(name).combine_chunks().to_batches():
                self._sinks[name].write(batch, Commit(engine.cut, found))

    def commit(self, engine: Engine) -> None:
        """Make durable all that was written, with the present cut. Raises OSError.

        During a replay the sinks that are muted hold more than that already.
        """
        for name, sink in self._sinks.items():
            if name not in self._muted:
                sink.commit(Commit(engine.cut, engine.digests[name]))
            else:
                held = self._muted[name].cut
                assert cuts.is_within(engine.cut, held), f"{sink.name} is behind, and not written"

    def close(self) -> None:
        """Release the sinks as they are."""
        for sink in self._sinks.values():
            sink.close()
