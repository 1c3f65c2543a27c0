"""What sinks of files decide: which file a record belongs to, and when a file is complete."""
