"""Change data capture from PostgreSQL: every change of a row as a record, in Debezium's form."""
