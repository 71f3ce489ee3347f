"""Users' pipelines, and the validated plans made of them.

builder     the calls that users make; checks: what they may say
plan        the plan; stages: where it may be cut; description: as readable text
node_keys   under which keys state is found
"""
