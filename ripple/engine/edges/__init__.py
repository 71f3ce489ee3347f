"""Edges: changes of a partition for the next stage, and the next stage's copy of them."""
