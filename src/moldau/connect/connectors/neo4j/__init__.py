"""Neo4j: records as nodes and relationships."""
