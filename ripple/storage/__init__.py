"""Storage: durable data of every kind.

store       object stores: a folder, S3, memory, and a cache in front of either
fenced      chains and journals whose writers are fenced by epochs
log         the embedded event log
checkpoint  state at cuts, and the manifest that lists them
"""
