"""The bundled tasks: one folder each, `reference.py` (the task file) and `space.py` (`SPACE`, its design space)."""
