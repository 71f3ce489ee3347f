"""``ripple checkpoint``: checkpoints."""
