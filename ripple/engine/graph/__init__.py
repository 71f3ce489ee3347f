"""The incremental graph: cells, columns, and stabilization in height order.

node        the core, compiled: nodes, edges, scopes, stabilize; heap: the dirty nodes
heights     heights when an edge is added; invariants: the graph's invariants, as code
cell, bind  nodes with one value; cutoff: when a value counts as unchanged
column      nodes with a row per slot
canonical   texts, lists and records as columns hold them: bytes, from Arrow and to it
arguments   checks of users' arguments
"""
