"""The engine process: its partitions, and their shared parts.

child, serving, runtime      the process; its loop over the pipe; roles of its partitions
runner                       one partition: its task, as a standby and as the owner
hosting, workload            the work of each partition; how its tasks are assembled
context, concurrency         the shared parts of a process; jobs, and limits on them
lane_home                    where repartition topics are
exchange, routes             connections with other processes; location of each partition
stages, files, identity      partitions per stage; open files; code and addresses of the worker
"""
