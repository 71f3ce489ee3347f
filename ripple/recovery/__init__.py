"""A partition that survives its process: its life, its dead letters, and what killed it."""
