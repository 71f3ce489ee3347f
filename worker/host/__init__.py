"""A host: runs a child process, a worker, for each pipeline of a cluster of several.

It computes nothing and loads no user code, so the crash of one worker leaves the others alone.

host          the running pipelines, by the record
child         the worker of one pipeline, from start to end, again and again
arguments     its command line
pages         /health, /ready, /alerts and /metrics of all, and /pipelines
"""
