"""The incremental graph: cells, columns, and stabilization in height order.

graph       what users build graphs with
node        the core, compiled: nodes, edges, scopes, stabilize; heap: the dirty nodes
heights     what rises when an edge is added; invariants: what always holds, as code
cell, bind  nodes with one value; cutoff: when a value counts as unchanged
column      nodes with a row per slot; keyspace, keys, slots: which key a slot stands for
keyed       columns as users see them, by key; directory: the keys that columns share
map_column  columns computed from columns, column_fold cells that fold one
columns     how these are made; rows: what a row is; folds: which fold is meant
introspect  a snapshot of all nodes, as S-expression, JSON or DOT
"""
