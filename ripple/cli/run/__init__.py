"""Commands that run or examine a pipeline: run, validate, plan, new, dead-letter.

dead_letter      ``ripple dead-letter``
durable          a durable run, with checkpoints
final_rows       the demo's output
new              ``ripple new``
plan             ``ripple plan``
plan_comparison  the effect of changed code on the state in a store, for ``ripple plan``
plan_outputs     the contents of the outputs of a run, or of a cluster's partition
plan_sources     how a cluster divides the records of given sources
plan_state       the state in a store: that of a run, or of a cluster
run              ``ripple run``
validate         ``ripple validate``
vwap_demo        ``ripple-vwap-demo``
"""
