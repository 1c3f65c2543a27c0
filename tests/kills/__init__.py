"""SIGKILLs of a broker under clients at work: `make kills`."""
