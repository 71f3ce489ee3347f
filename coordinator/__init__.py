"""The coordinator: which process of the cluster owns which partition, and why.

What decides has no clock, no chance and no I/O:

settings    what a process runs with, and where each value came from
limits      its limits and periods, by name
ring        which process a partition prefers, and which ones after it
placement   the owners that follow from the owners before, when processes come or go
views       who is heard by whom: views of replicas, merged
hearing     what one replica has heard
waiting     those who ask to join
fitting     whether they compute the same
standbys    who follows each partition, ready to have it
progress    what members have reported of themselves, and how moves get on
commands    what people may tell the cluster
asked       those that wait to be done
triggers    when workers are told to store checkpoints
planning    the version of the assignment that follows
events, instructions    what comes in, and what goes out
state       the decisions of one coordinator
status      what it knows, for pages and commands

Around it a thin shell acts:

shell       runs the decisions: what comes in is decided on, what is decided is done
archive     what it reads and writes in the store
talks       the conversations with workers
peers       the other replicas
belonging   the cluster that its store is of
service     its methods, for workers, people and other replicas
messages    what people and replicas say as bytes, and back
pages, metrics    what it shows to whoever watches it
dashboard   of a cluster: dashboard_words, dashboard_commands, numbers, graphs, timeline, showing;
            retrying: dead letters given back
process     all of it as one process
"""
