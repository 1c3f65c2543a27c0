"""Elasticsearch and OpenSearch: records as documents of an index."""
