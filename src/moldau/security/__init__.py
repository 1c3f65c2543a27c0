"""What brokers and clients share about security: who somebody is, and how a connection is
protected."""
