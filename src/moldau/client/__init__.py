"""Producer, consumer, share consumer and admin for any Kafka cluster."""
