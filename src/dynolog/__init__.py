"""Always-on monitoring of CPU-GPU machines and on-demand PyTorch traces."""

__version__ = "0.1.0"
