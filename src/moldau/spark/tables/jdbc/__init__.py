"""Databases by their JDBC address: PostgreSQL, MariaDB and SQLite; others with Spark's own."""
