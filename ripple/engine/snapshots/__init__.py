"""Snapshots: an engine's state at a cut, whole or as a difference."""
