"""Checks made by others, as scripts that run inside a cage: what the referee is compared with."""
