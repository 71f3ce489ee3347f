"""Changes of a table of PostgreSQL as a source: what its server decodes of its log for a slot.

The sink is ripple.connectors.postgres, whose places these are.

position   where in a server's log changes stand
messages   what the plugin pgoutput sends: transactions, relations, changes
row        what one change says as a record, and whether a table fits one
slot       a slot's state and what is known of it in ``ripple_slots``; who may read
stream     the connection on which a slot's changes come
inputs     what a life reads
"""
