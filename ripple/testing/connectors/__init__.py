"""Suites for connectors: the contracts of sources and sinks, a test for each rule."""
