"""Which job, container or user stands behind a process or device."""
