"""What users write, and the validated plan that is made of it.

builder     the calls that users make; checks: what they may say
plan        the plan; stages: where it may be cut; description: as readable text
node_keys   under which keys state is found
"""
