"""The topic and the partition of the metadata log."""

METADATA_TOPIC = "__cluster_metadata"
METADATA_PARTITION = 0
