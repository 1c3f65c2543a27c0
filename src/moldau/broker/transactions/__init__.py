"""Transactions in the data path: markers that end them, and proof that batches belong to one."""
