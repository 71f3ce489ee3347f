"""The incremental graph: cells, columns, and stabilization in height order.

graph       what users build graphs with
node        the core, compiled: nodes, edges, scopes, stabilize; heap: the dirty nodes
heights     what rises when an edge is added; invariants: what always holds, as code
cell, bind  nodes with one value; cutoff: when a value counts as unchanged
column      nodes with a value per key; keys, slots: where a key's value is
introspect  a snapshot of all nodes, as S-expression, JSON or DOT
"""
