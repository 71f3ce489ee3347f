"""Engine: a pipeline's state for one partition. No I/O, no clock, no randomness.

graph, kernels    incremental cells and columns; compiled loops over batches
operators         folds, windows, row steps
changes           deltas of rows, and tables that are changed by them
snapshots, edges  state at a cut; changes to the next stage and from the one before
machine           Engine, Follower and Partition: the state machine over all of these
migration         state of other code, carried over
"""
