"""What several handlers share; the package above has one file per API."""
