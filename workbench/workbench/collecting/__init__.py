"""Supervised examples out of models (CUDA-L1's first stage): sampled, refereed, only correct ones kept."""
