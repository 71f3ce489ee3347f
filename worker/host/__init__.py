"""A host: runs the worker of each pipeline of a cluster of several as a process of its own.

It computes nothing and loads no code of users, so what ends one worker leaves the others alone.

host          which pipelines run here, by the record
child         the worker of one pipeline, from start to end, again and again
arguments     its command line
pages         /health, /ready, /alerts and /metrics of all, and /pipelines
"""
