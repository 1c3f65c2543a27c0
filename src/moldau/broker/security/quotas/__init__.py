"""How much a client may use: bytes, handling time, changes of metadata, connections."""
