"""Commands for access control lists and delegation tokens."""
