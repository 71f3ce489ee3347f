"""The batch path: what becomes of a whole batch in one compiled call."""
