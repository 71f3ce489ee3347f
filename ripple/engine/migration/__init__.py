"""What a change of code does to the state in a checkpoint: kept, migrated, rebuilt or refused.

lineage     the nodes of a plan and of what wrote a snapshot; what has changed in them
evolution   what becomes of each node and its state
adaptation  from the snapshot of another plan to one that the engine restores
migration   state that a function of the user makes
staying     of one stage's partition, where nothing may change but names and outputs
"""
