"""The worker: it owns partitions, for as long as the assignment says so.

state            its seven states, and how it goes from one to another
membership       its part in the cluster: joins, says that it is well, hears of versions, leaves
coordinator_link the way to one coordinator
supervisor       a worker as others see it; it never computes
deaths           which processes have ended unasked, and when that is too much
slot             one of its processes: started again when it ends, killed when it hangs
child            an engine process; ``spawning`` starts it, ``pipe`` and ``words`` are between both,
                 ``serving`` is what it does with them
runtime          what a process hosts follows from the assignment
hosted           one partition of any stage in a process: ``input_partition`` reads inputs,
                 ``stage_partition`` follows others, ``owned`` is what both have in common;
                 ``hosting`` chooses, ``ends`` is what they read and write
site             what the partitions of a process have in common; ``turns`` is whose turn it is
stages           how many partitions each stage of a plan has; ``files``: how many files those need
exchange         the sockets between processes; ``routes`` says who is where
pages, settings  probes and metrics; flags, variables and a file
backpressure     how full its queues are, and what that means for its intake
"""
