"""The memory: events, the session file, the projection, replay, export."""
