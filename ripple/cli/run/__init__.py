"""Commands that run pipelines, or look at one: run, plan, new, dead-letter."""
