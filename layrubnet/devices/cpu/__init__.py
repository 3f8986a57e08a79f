"""The CPU device: NumPy is the reference for every operation."""
