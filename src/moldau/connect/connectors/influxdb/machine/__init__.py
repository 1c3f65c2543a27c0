"""What the InfluxDB sink decides: how a record becomes a line."""
