"""Which parents, which islands, what is remembered."""
