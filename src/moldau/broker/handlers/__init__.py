"""One file per API: decode, authorise, call, encode."""
