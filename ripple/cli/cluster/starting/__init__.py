"""A cluster on this machine: its processes and its progress.

plan          the processes, and their command lines
process       one process, restarted when it dies
at_work       how many partitions are running
reach         lag of the outputs, in records of the input
stuck         failures that do not pass
"""
