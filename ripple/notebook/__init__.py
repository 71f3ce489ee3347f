"""Graphs as users build them: cells, and columns by key.

graph       the public ``Graph``
keyed       columns by key; directory: the keys that columns share
map_column  columns computed from columns, column_fold cells that fold one
columns     their construction; rows: types of rows; folds: the choice of a fold
"""
