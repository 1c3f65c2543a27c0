"""`moldau schemas`: the schemas of a registry, and files of schemas and data."""
