"""Column expressions: built from names and operators, checked once, evaluated in bulk."""
