"""The page in the browser that shows a cluster or a run: ``docs/dashboard.md``.

contract   what is shown, and what may be asked of whoever shows it
drawing    a plan as a graph to draw
figures    rates and ages, from the numbers that processes count
ticks      one snapshot a tick, shared by all who look
tables     the part of a table that is on somebody's screen, as exact text
outputs    live tables and taps, each followed once for all who look
kept       checkpoints and letters in a store
gate       who is let in, as what, and how often
web        what can be asked, and what answers, over HTTP (extra ``dashboard``): listening, with
           entrance (who asks), viewers (who looks), headers, files
apart      questions in SQL, answered by a process of its own; children: such processes
run        one run of ``ripple run``
assets     the files of the page
"""
