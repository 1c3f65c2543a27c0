"""InfluxDB: records as points, in its line protocol."""
