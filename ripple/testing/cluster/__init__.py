"""Cluster tests: real workers and coordinators in a simulated world, and their invariants."""
