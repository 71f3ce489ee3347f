"""``ripple log``: event logs."""
