"""How made-up values come about: from a schema with hints, and a source of randomness."""
