"""The MQTT proxy: devices speak MQTT 3.1.1 and 5 to Kafka topics."""
