"""How the metadata log is called."""

METADATA_TOPIC = "__cluster_metadata"
METADATA_PARTITION = 0
