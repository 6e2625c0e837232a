"""The basis of all kernels: compilation, spaces, random numbers, counts."""
