"""Event time: window assigners, watermarks, verdicts and triggers."""
