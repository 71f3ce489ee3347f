"""Decisions of a coordinator: no clock, no randomness, no I/O.

state                  the decisions of one replica: events in, instructions out
events, instructions   its inputs and outputs
planning               the next version of the assignment
ring, placement        consistent hashing; owners that follow from the owners before
standbys               the hot standbys of partitions
views, failure_detector   merged views of replicas; the memory of one replica
join_queue, compatibility   workers that ask to join; whether they fit the cluster
progress               reports of members, and progress of moves
commands, pending_commands   commands of operators; those that wait to be done
checkpoint_triggers    when workers are told to store checkpoints
limits, status         limits and periods; a replica's state, for pages and commands
"""
