"""What a worker decides, without acting: retries, offsets, states, who runs what."""
