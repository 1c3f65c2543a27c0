"""Scripts: commands in, a trace of what the pure machines did out. See tests/scripts/README.md."""
