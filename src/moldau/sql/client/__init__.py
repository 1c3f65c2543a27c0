"""A client of SQL servers: ksqlDB's HTTP interface, and DB-API 2.0 on top of it."""
