"""Cutoffs: when a recomputed value counts as unchanged, so that nothing above it is recomputed.

The default, ``Cutoff.PHYSICAL``, is physical equality: the same object. Python
boxes numbers, though, so whether two equal floats are one object is an accident of the
interpreter, and the set of recomputed nodes must not rest on accidents. Plain ``float``, ``int``
and ``str`` values are therefore also the same when their type and bits agree: ``0.1 + 0.2``
computed twice is unchanged, ``0.0`` and ``-0.0`` differ, a NaN equals itself. Everything else,
containers and records included, is compared by identity: return a new object for a new value,
or give ``equal=operator.eq``.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar

from ripple.core.arguments import need_function, shown
from ripple.core.errors import GraphError
from ripple.core.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Callable


class Rule(IntEnum):
    """How a cutoff decides; the compiled cells know these numbers."""

    PHYSICAL = 0
    EQUAL = 1
    ALWAYS = 2
    NEVER = 3


@frozen
class Cutoff:
    """``Cutoff.PHYSICAL``, ``Cutoff.ALWAYS``, ``Cutoff.NEVER``, or ``Cutoff.equal(f)``.

    A node with a cut-off value keeps its old one, and its dependents stay clean.
    ``ALWAYS`` always propagates; ``NEVER`` never does: the node is a constant.
    """

    rule: Rule
    equals: Callable[[Any, Any], bool] | None = None

    PHYSICAL: ClassVar[Cutoff]
    ALWAYS: ClassVar[Cutoff]
    NEVER: ClassVar[Cutoff]

    def __post_init__(self) -> None:
        if not isinstance(self.rule, Rule):
            raise GraphError(
                "a cutoff is Cutoff.PHYSICAL, ALWAYS, NEVER or Cutoff.equal(function), not "
                f"Cutoff({shown(self.rule)})"
            )
        if self.rule is Rule.EQUAL:
            need_function("Cutoff.equal: equals", self.equals, GraphError)
        elif self.equals is not None:
            raise GraphError(f"only Cutoff.equal has equals, not {shown(self.equals)}")

    @staticmethod
    def equal(equals: Callable[[Any, Any], bool]) -> Cutoff:
        """Cut off when ``equals(old, new)`` is true."""
        return Cutoff(Rule.EQUAL, equals)


Cutoff.PHYSICAL = Cutoff(Rule.PHYSICAL)
Cutoff.ALWAYS = Cutoff(Rule.ALWAYS)
Cutoff.NEVER = Cutoff(Rule.NEVER)
