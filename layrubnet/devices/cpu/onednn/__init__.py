"""Optional engine of the CPU device: oneDNN's kernels, called through its C interface."""
