"""Commands that run services: the Schema Registry and the REST Proxy."""
