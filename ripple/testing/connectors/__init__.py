"""Suites for connectors: what a source and a sink promise, a test each."""
