"""The engine process: its partitions, and what they share.

child, serving, runtime      the process; its loop over the pipe; roles of its partitions
runner                       one partition: its task, as a standby and as the owner
hosting, workload            the work of each partition; how its tasks are assembled
context, concurrency         what the partitions of a process share; jobs, and limits on them
lane_home                    where repartition topics are
exchange, routes             connections with other processes; location of each partition
stages, files, identity      partitions per stage; open files; code and addresses of the worker
"""
