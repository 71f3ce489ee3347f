"""Operators: row steps, admission, folds over events, windows and tables, and joins."""
