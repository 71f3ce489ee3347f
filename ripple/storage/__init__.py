"""Storage: what outlives a process.

store       object stores: a folder, S3, a cache before either
fenced      chains and journals whose writers are fenced by epochs
log         the embedded event log
checkpoint  state at cuts, and the list of what counts
"""
