"""What runs inside the cages. Standard library at the top; nothing here knows an expected value."""
