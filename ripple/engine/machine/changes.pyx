# cython: language_level=3
"""What an engine shows between two cuts: compiled, since every batch makes one."""

from collections.abc import Mapping

NOTHING = {}


cdef class Shown:
    """Record batches by output, which become Arrow's when they are asked for.

    made: the same for those who take them as they were made.
    """

    cdef readonly dict made

    def __init__(self, dict made not None):
        self.made = made

    def __getitem__(self, output):
        return self.made[output].arrow()

    def __iter__(self):
        return iter(self.made)

    def __len__(self):
        return len(self.made)

    def __contains__(self, output):
        return output in self.made

    def __eq__(self, other):
        return dict(self) == dict(other) if isinstance(other, Mapping) else NotImplemented

    def __repr__(self):
        return repr(dict(self))

    def get(self, output, default=None):
        """Return an output's rows, or ``default``."""
        return self[output] if output in self.made else default

    def keys(self):
        """Return the outputs."""
        return self.made.keys()

    def values(self):
        """Return all rows."""
        return [made.arrow() for made in self.made.values()]

    def items(self):
        """Return outputs with their rows."""
        return [(output, made.arrow()) for output, made in self.made.items()]


Mapping.register(Shown)


cdef class Changes:
    """All deltas between two cuts.

    outputs: per output of the plan, a record batch of the key, ``op`` (int8: Set 0, Remove 2) and
    the values, null in a Remove; at most one row per key: deltas as :mod:`ripple.engine.changes` takes them.
    Their order is a function of the state at the last cut and of this one: a fold over events of
    one input, without windows, has that of the events; all others go by window start, if the key
    has one, and a hash of the key.
    cut: per input, the next offset to read: what the outputs have reached. watermark_ns: the merged
    watermark, or watermark.NONE. retractions: per output, the rows that were shown and changed, as
    they were, for consumers that withdraw before they correct; only if the engine was asked for
    them. final: per output, the rows that became final, without ``op`` and in no order, whether
    they changed or not; only if asked for (see ``deltas_of`` in ripple.engine.machine.deltas).
    """

    cdef readonly Shown outputs
    cdef readonly object cut, watermark_ns, retractions, final

    def __init__(self, Shown outputs not None, cut, watermark_ns, retractions=NOTHING, final=NOTHING):
        self.outputs, self.cut, self.watermark_ns = outputs, cut, watermark_ns
        self.retractions, self.final = retractions, final

    def __repr__(self):
        return (
            f"Changes(outputs={self.outputs!r}, cut={self.cut!r}, "
            f"watermark_ns={self.watermark_ns!r}, retractions={self.retractions!r}, "
            f"final={self.final!r})"
        )
