"""Applications of `moldau.streams`."""
