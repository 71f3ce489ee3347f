"""Exact, retractable aggregates, one family a file."""
