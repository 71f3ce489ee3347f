"""Crash tests: a run that is killed wherever it acts, and a judge of what is left."""
