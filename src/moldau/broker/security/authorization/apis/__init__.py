"""Which permission each API needs, by family; `table.py` has all of them."""
