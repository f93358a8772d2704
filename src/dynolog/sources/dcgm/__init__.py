"""NVIDIA GPUs through DCGM: a binding of our own to libdcgm 2, 3 and 4, and the backend on top of it."""
