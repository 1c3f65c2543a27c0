"""What a fetched batch is, and how it is written for another partition. Pure."""
