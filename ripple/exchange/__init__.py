"""State edges and live outputs over links: publications, subscriptions, credit. No I/O, no clock.

exchange    one process's partitions and connections; edges: state edges and outputs by name
publication, publications, subscription    both ends of a stream of changes
session     one connection: bundles, window, credit; peer_channel: contract; connection: bytes
singles     outputs as single deltas, for peers that know types 0 to 5 only
"""
