"""Commands that run or examine a pipeline: run, plan, new, dead-letter.

dead_letter     ``ripple dead-letter``
durable         a durable run, with checkpoints
final_rows      the demo's output
new             ``ripple new``
plan            ``ripple plan``
plan_outputs    the contents of the outputs of a run, for ``ripple plan``
run             ``ripple run``
vwap_demo       ``ripple-vwap-demo``
"""
