"""What change data capture decides: what the messages mean, types, envelopes, where to continue."""
