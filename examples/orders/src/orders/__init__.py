"""Orders on Kafka: taken by HTTP, validated in parallel, moved to one final state, counted, loaded
into tables and answered by e-mail."""
