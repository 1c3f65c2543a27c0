"""HTTP: records as requests, and answers of a server as records."""
