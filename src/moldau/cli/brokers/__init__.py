"""Commands that run brokers: their options. `cli/nodes` does the work."""
