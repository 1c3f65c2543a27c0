"""What the JDBC connectors decide: types, statements, where a query continues."""
