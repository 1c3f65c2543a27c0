"""What tests of the Schema Registry share."""
