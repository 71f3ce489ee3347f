"""The dashboard of a cluster.

server, cluster      the HTTP server; the snapshot that it shows
words                health of the cluster in sentences; bottlenecks
slowed               for how much of the last minute a worker took in less
runbook              what to do about each alert
graphs, worker_metrics   live graphs and metrics, asked from workers
commands, letter_retry   commands given from the page; retries of dead letters
timeline             recent log lines
"""
