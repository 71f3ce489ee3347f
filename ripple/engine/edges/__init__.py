"""Edges: what a partition sends to the next stage, and the copy that the next stage keeps."""
