"""The transaction coordinator: who may write in which transaction, and how it ends."""
