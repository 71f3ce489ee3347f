"""The reference interpreter: what a pipeline means, in slow and obvious Python."""
