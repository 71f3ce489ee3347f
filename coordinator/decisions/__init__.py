"""Decisions of a coordinator: no clock, no randomness, no I/O."""
