"""The metadata quorum."""
