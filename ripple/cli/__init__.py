"""The commands of ``ripple``: ``main`` finds a subcommand's module and runs it."""
