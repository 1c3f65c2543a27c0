"""What the Elasticsearch sink decides: ids, versions, actions, mappings, answers."""
