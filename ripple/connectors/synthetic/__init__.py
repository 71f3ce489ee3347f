"""Trades made by rule, as a source."""
