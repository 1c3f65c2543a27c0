"""JDBC: tables of PostgreSQL, MariaDB, MySQL and SQLite to topics, and topics to tables."""
