"""Operators: row steps, admission, and the folds over events, windows and tables."""
