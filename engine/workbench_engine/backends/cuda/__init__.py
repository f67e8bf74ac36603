"""The `cuda` backend: what a CUDA C++ candidate says of itself, and its build. Nothing here needs a GPU or a driver."""
