"""The engine process: its partitions, and what they share.

child, serving, runtime      the process; its loop over the pipe; roles of its partitions
hosting                      chooses the runner of a partition: input or downstream stage
runner, input_runner, stage_runner   tasks of one partition, one after the other
context, concurrency         what the partitions of a process share; limits on work at once
endpoints, lane_home         inputs and outputs by partition; where repartition topics are
exchange, routes             connections with other processes; location of each partition
stages, files, identity      partitions per stage; open files; code and addresses of the worker
"""
