"""Schema validation: topics that ask for it take only records that name a registered schema."""
