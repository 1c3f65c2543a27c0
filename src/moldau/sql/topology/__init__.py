"""A plan's steps as a streams topology, with ksqlDB's names of stores and internal topics."""
