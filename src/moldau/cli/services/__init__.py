"""Commands that run services: the Schema Registry."""
