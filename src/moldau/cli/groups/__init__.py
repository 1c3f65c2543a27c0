"""Commands for groups of all types, and for transactions."""
