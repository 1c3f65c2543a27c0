"""The metadata quorum: which node appends to the metadata log, and what of it is committed."""
