"""One partition's life, wherever it is lived.

active      reads, applies, writes; downstream: of a later stage, which subscribes to others
drive       pure: what an engine is fed; live: entries in, changes out
plain, keeper   one that nobody goes on with, and one that is for ever
home        whose state it is
restoring   where it begins; catching_up: to where its outputs are; warm: beside an owner
stage_base, comeback, following   the same of a later stage, and what it takes in
group       outputs as one commit; outputs, shown: what each lacks; grouping: which belong together
kept, storing   when it commits; checkpoints made beside the work
letters     what was refused, in a letter_box; retries; in_flight, suspicion: which record kills
place       where letters and notes lie: a letter_box in the store, notes there or in a file
patient_inputs  inputs whose server may go away: a life waits for it; passed_inputs: the rest
sends, lanes    contracts with those who follow, directly or by a log; tracing; noticed: told of
"""
