"""Redis: records as keys, hashes, lists, sets or streams; streams as records."""
