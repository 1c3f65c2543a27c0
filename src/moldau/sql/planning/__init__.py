"""From an analysed query to the steps that a topology is built from."""
