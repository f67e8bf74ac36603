"""Programs that run inside a compile cage: standard library only, importable by path, nothing else of ours in reach."""
