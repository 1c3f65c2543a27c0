"""Commands for secured clusters, access control lists and delegation tokens."""
