"""Orders: published, taken from stock, paid."""
