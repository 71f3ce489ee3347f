"""The worker: it owns partitions, for as long as the assignment says so.

state          its seven states, and how it goes from one to another
backpressure   how full its queues are, and what that means for its intake
"""
