"""The metadata quorum: who may write the metadata log, and when what is written is committed."""
