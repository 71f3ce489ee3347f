"""Crash tests: a run killed at each of its effects, and the checks of the remains."""
