"""What several handlers share; the folder above holds one file per API."""
