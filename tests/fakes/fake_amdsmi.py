"""A stand-in for ROCm's `amdsmi` package: the functions that are used, with the shapes of its reference."""

from collections.abc import Callable
from types import ModuleType


class AmdSmiException(Exception):  # noqa: N818 - the name that the package gives it
    """Root of the package's errors."""


def fake_amdsmi(devices: dict[str, dict[str, object]], *, failing: frozenset[str] = frozenset()) -> ModuleType:
    """A module that knows `devices` by PCI address: `market_name`, and `metrics` as amdsmi_get_gpu_metrics_info gives them.

    Functions named in `failing` raise as the package does.
    """
    handles = {address: object() for address in devices}

    def device(handle: object) -> dict[str, object]:
        return next(devices[address] for address, known in handles.items() if known is handle)

    answers: dict[str, Callable[..., object]] = {
        "amdsmi_init": lambda: None,
        "amdsmi_shut_down": lambda: None,
        "amdsmi_get_lib_version": lambda: {"year": 25, "major": 26, "minor": 2, "release": 0, "build": "abc"},
        "amdsmi_get_processor_handles": lambda: list(handles.values()),
        "amdsmi_get_gpu_device_bdf": lambda handle: next(
            address.upper() for address, known in handles.items() if known is handle
        ),
        "amdsmi_get_gpu_asic_info": lambda handle: {
            "market_name": device(handle)["market_name"],
            "vendor_id": "0x1002",
        },
        "amdsmi_get_gpu_metrics_info": lambda handle: device(handle)["metrics"],
    }
    module = ModuleType("amdsmi")
    for name, answer in answers.items():
        setattr(module, name, _refusing(name) if name in failing else answer)
    return module


def _refusing(name: str) -> Callable[..., object]:
    def refuse(*_arguments: object) -> object:
        raise AmdSmiException(f"{name}: AMDSMI_STATUS_NOT_SUPPORTED")

    return refuse
