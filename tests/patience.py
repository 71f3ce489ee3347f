"""How long tests wait for what must come.

It ends what hangs, and measures nothing: a machine that is busy, or ten times slower than this one,
fails no test by it. What a test promises about time, it says itself.
"""

PATIENCE_S = 300.0
