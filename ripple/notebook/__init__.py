"""Graphs as users build them: cells, and columns by key.

graph       what users build graphs with
keyed       columns by key; directory: the keys that columns share
map_column  columns computed from columns, column_fold cells that fold one
columns     how these are made; rows: what a row is; folds: which fold is meant
"""
