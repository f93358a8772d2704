"""GPUs of Intel, from the files of the xe and i915 drivers."""
