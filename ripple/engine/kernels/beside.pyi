import numpy as np
import numpy.typing as npt

from ripple.engine.graph.column import Column
from ripple.model.keys.slots import SlotSet

Ints = npt.NDArray[np.int64]

def link_sides(joined: Column, left: Column, right: Column, right_fields: Ints) -> None: ...
def follow(side: Column, place_of: Ints, touched: SlotSet, capacity: int) -> bool: ...
def unplaced(side: Column, place_of: Ints) -> Ints | None: ...
def lay_touched(
    joined: Column,
    left: Column,
    right: Column,
    right_fields: Ints,
    touched: SlotSet,
    left_at: Ints,
    right_at: Ints,
    *,
    needs_left: bool,
    needs_right: bool,
) -> Ints: ...
def lay_beside(
    joined: Column,
    left: Column,
    right: Column,
    right_fields: Ints,
    rows: Ints,
    left_slots: Ints,
    right_slots: Ints,
    *,
    needs_left: bool,
    needs_right: bool,
) -> None: ...
