"""S3: topics as objects, and back. Works with every storage that speaks S3."""
