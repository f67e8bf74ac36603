"""Untrusted code: bubblewrap, limits, kill, worker pool."""
