"""Functions: what is declared (`declarations.py`), which one a call means (`resolution.py`), and
ksqlDB's own (`builtin/`, `aggregates/`). `registry.built_in()` has them all."""
