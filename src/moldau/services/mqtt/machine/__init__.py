"""What the proxy decides: packets, topics, mapping, sessions. Pure."""
