"""What is seen of processes from outside.

metrics     the one table of names; samples, measures: plain numbers; exposition
log         entries (structlog), process_log, levels, repeats, secrets; memory
alerts      pure rules
tracing     spans (opentelemetry), sampler

Each library in brackets, and prometheus_client in exposition, is imported there alone.
"""
