"""How a candidate is built and launched."""
