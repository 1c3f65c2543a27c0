"""What goes over the wire and into the log: messages, records, errors."""
