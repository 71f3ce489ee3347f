"""Commands for a cluster.

cluster, up, down          ``ripple cluster``: start and stop a local cluster, commands
starting                   the processes of a local cluster
deploy, deploying          other code beside a cluster's, and which one serves
status, status_page, top   health and load
inspect, metric_pages      graphs, schemas, metrics, partitions, edges
query, debug               SQL over outputs; their changes
move, drain, undrain       moving partitions
dashboard                  the flags of the dashboard
"""
