"""Control: what the processes of a cluster agree on and report, and how a process is run.

assignment, rpc       who owns which partition; the messages of the control channel
telemetry, probes     metrics, logs, alerts, traces; health checks over HTTP
daemon, process, process_settings, event_loop, environment   a process of ours
secrets, reread, validity   settings that are hidden, read again, or expire
"""
