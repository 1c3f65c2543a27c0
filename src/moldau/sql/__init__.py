"""ksqlDB's language over topics: text, syntax tree, plan, streams topology."""
