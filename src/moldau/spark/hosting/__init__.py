"""Programs that run as long-lived tasks of Spark."""
