"""What connectors that capture changes share: Debezium's envelope and its filters."""
