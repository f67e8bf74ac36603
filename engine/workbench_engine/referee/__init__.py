"""Is it right, how fast is it, is it honest."""
