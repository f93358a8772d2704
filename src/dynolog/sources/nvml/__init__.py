"""NVIDIA devices through NVML, the library that comes with the driver (`nvidia-ml-py`); read by a child process."""
