"""What a node measures of itself: Kafka's metrics under Kafka's names."""
