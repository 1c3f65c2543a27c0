"""Functions of users run in processes of their own, which may crash, hang and eat memory."""
