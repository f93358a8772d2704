"""Every target."""

from fuzz import accelerators, deliveries, fleet_inputs, ipc, kernel_texts, kernel_trees, rpc, settings_files, traces
from fuzz.target import Target

TARGETS: tuple[Target, ...] = (
    *rpc.TARGETS,
    *ipc.TARGETS,
    *kernel_texts.TARGETS,
    *kernel_trees.TARGETS,
    *settings_files.TARGETS,
    *traces.TARGETS,
    *accelerators.TARGETS,
    *fleet_inputs.TARGETS,
    *deliveries.TARGETS,
)
