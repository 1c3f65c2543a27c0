"""What change data capture from a binary log decides: types, origin, where to continue."""
