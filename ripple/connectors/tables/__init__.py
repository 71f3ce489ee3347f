"""Tables of lakes as sinks: the newest row of each key, or each event, with their cut.

table       the common part of the systems: schema, checks, and the contract
record      the content of one of our commits
pending     changes before a commit; events: the same of events, in a temporary file
promise     of continued tables to their readers
sink        a table that a restarted run continues, and one that is written whole
"""
