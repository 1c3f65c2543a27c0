"""What becomes of a document on its way to MongoDB."""
