"""State stores: typed on the outside, Kafka Streams' changelog bytes on the inside."""
