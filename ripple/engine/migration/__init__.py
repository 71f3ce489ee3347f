"""Effects of a code change on the state in a checkpoint, and its move to another home.

A change keeps state, migrates it, has it rebuilt, or is refused.

lineage     the nodes of a plan and of a snapshot's writer; the changes between them
evolution   a verdict on each node and its state
adaptation  from the snapshot of another plan to one that the engine restores
narrowing   joins with a narrower span, which resume with the rows held
migration   state made by a function of the user
scan_states state of a scan, made by the names of fields or by a function
homes       state of several stages between one engine and partitions for each: what moves
apart       from one engine to partitions; ``together``: the way back
staying     of one stage's partition, where nothing may change but names and outputs
"""
