"""What flows between stages over links: who follows whom, credit, frames. No I/O, no clock.

exchange    of one process: its partitions, and the ways to others; edges: what is followed
sending     a partition that others follow (sendings: all that it gives); following: one that does
session     one connection: bundles, window, credit; way: its contract; speaking: its bytes
singles     outputs as single deltas, for peers that know types 0 to 5 alone
"""
