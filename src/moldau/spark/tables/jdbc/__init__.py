"""Databases by their JDBC address: PostgreSQL and SQLite without a driver, others with Spark's."""
