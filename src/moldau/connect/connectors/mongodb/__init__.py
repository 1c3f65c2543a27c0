"""MongoDB: records as documents, and changes of collections as records."""
