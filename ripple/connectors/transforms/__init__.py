"""Records of another place, with transforms between them and whoever reads; see docs/connectors.md.

transforms  of columns, one class each; no I/O
chain       several in order: what they need of a source, and what they make of a batch
places      the file that says which, and what stands behind it
"""
