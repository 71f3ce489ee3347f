"""The supervisor: a worker as the cluster sees it. It computes nothing.

supervisor, state     the worker's lifecycle; its seven states as a table
membership            joining, heartbeats, reading the assignment chain, leaving
coordinator_link      the connection to one coordinator
slot, spawning        a process that is restarted when it ends or hangs; how it is started
deaths, watch         repeated process failures; the worker's own alerts
"""
