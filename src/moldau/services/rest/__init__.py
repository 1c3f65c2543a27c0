"""The REST Proxy: Kafka over HTTP, as Confluent's kafka-rest has it (v2 and v3)."""
