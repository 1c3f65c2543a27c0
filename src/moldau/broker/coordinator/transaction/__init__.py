"""The transaction coordinator: which producer may write in which transaction, and how it ends."""
