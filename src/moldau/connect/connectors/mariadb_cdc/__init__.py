"""Change data capture from MariaDB and MySQL: rows of the binary log, in Debezium's form."""
