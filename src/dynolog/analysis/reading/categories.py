"""What kinds of events there are: one table from every category name that Kineto has written to the few kinds that answers need."""

import enum


class Category(enum.IntEnum):
    """The kind of an event. GPU means any accelerator: the names of NVIDIA, AMD, Intel, MTIA and others lead to the same kinds."""

    OTHER = 0
    CPU_OP = 1
    USER_ANNOTATION = 2
    GPU_USER_ANNOTATION = 3
    PYTHON_FUNCTION = 4
    RUNTIME = 5  # calls of cuda*, hip*, ze*...: they launch what the device does
    DRIVER = 6
    KERNEL = 7
    MEMCPY = 8
    MEMSET = 9
    SYNC = 10  # waits and events of a stream, as the device tells them
    COLLECTIVE = 11  # a collective as a library's own plug-in tells it (`collective_comm`)
    OVERHEAD = 12  # what the profiler itself cost
    SPAN = 13  # the recording as a whole


# What occupies a stream of a device.
GPU_WORK = frozenset({Category.KERNEL, Category.MEMCPY, Category.MEMSET})
# Calls of the host that hand work to a device.
LAUNCHES = frozenset({Category.RUNTIME, Category.DRIVER})

# Lower-cased, as early versions wrote `Kernel`, `Memcpy`, `Runtime`, `Operator`.
_BY_NAME = {
    "cpu_op": Category.CPU_OP,
    "operator": Category.CPU_OP,
    "user_annotation": Category.USER_ANNOTATION,
    "gpu_user_annotation": Category.GPU_USER_ANNOTATION,
    "python_function": Category.PYTHON_FUNCTION,
    "python": Category.PYTHON_FUNCTION,
    "runtime": Category.RUNTIME,
    "cuda_runtime": Category.RUNTIME,
    "hip_runtime": Category.RUNTIME,
    "xpu_runtime": Category.RUNTIME,
    "mtia_runtime": Category.RUNTIME,
    "glow_runtime": Category.RUNTIME,
    "privateuse1_runtime": Category.RUNTIME,
    "cuda_driver": Category.DRIVER,
    "xpu_driver": Category.DRIVER,
    "privateuse1_driver": Category.DRIVER,
    "kernel": Category.KERNEL,
    "concurrent_kernel": Category.KERNEL,
    "hpu_op": Category.KERNEL,
    "mtia_ccp_events": Category.KERNEL,
    "memcpy": Category.MEMCPY,
    "gpu_memcpy": Category.MEMCPY,
    "memset": Category.MEMSET,
    "gpu_memset": Category.MEMSET,
    "cuda_sync": Category.SYNC,
    "cuda_event": Category.SYNC,
    "xpu_sync": Category.SYNC,
    "collective_comm": Category.COLLECTIVE,
    "overhead": Category.OVERHEAD,
    "trace": Category.SPAN,
}


def category(name: str) -> Category:
    """The kind that a category's name stands for; OTHER for names that are not known."""
    return _BY_NAME.get(name.lower(), Category.OTHER)
