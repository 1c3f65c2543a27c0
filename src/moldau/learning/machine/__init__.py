"""Pure: the exercises, what their checks demand, and the reader's progress."""
