"""FileStream: lines of a file to a topic, records of topics to lines of a file."""
