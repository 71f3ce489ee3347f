"""Commands about a cluster: cluster, status, top, query, inspect, debug, move, drain."""
