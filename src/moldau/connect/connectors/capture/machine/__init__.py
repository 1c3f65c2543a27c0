"""What change data capture decides for any database: schemas, keys, envelopes, which tables."""
