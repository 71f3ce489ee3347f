"""The reference interpreter: the meaning of a pipeline, in slow and obvious Python."""
