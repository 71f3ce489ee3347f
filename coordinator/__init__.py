"""The coordinator: proposes which process of the cluster owns which partition.

decisions/           failure detection, planning, placement: no clock, no randomness, no I/O
service/             the shell around them: calls, sessions with workers, the store, other replicas
dashboard/           the dashboard of a cluster
process, settings    the coordinator process; its flags, variables and configuration file
pages, metrics       pages of the health and metrics ports
"""
