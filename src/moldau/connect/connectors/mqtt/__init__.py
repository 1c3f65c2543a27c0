"""MQTT: messages of a broker as records, and records as messages."""
