"""The worker: it owns partitions, for as long as the assignment says so.

state          its seven states, and how it goes from one to another
membership     its part in the cluster: joins, says that it is well, hears of versions, leaves
coordinator_link   the way to one coordinator
backpressure   how full its queues are, and what that means for its intake
"""
