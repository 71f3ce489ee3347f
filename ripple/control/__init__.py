"""Control: what the processes of a cluster agree on and report, and how a process is run.

assignment, rpc       ownership of partitions; the messages of the control channel
telemetry, probes     metrics, logs, alerts, traces; health checks over HTTP
daemon, process, process_settings, event_loop, environment   our long-running processes
secrets, reread, validity   settings that are hidden, reread, or expire
"""
