"""The adversarial judge of CUDA-L1: past cheats that look alike, and a language model's opinion. Advisory only."""
