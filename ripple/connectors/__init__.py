"""Where events come from and where changes go."""
