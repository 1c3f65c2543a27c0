"""Commands that write and print records, and the formats they print."""
