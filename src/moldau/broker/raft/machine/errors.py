"""Errors of the metadata log."""


class MetadataError(Exception):
    """A metadata log or snapshot that contradicts itself or this version cannot read."""
