"""What the text files of amdgpu say (Documentation/gpu/amdgpu/thermal.rst, driver-misc.rst, ras.rst)."""

import re

import msgspec

# '1: 1700Mhz *'; the level of deep sleep is S.
_LEVEL = re.compile(rb"^\s*(?:\d+|S)\s*:\s*(\d{1,6})\s*[Mm][Hh]z\s*(\*?)\s*$", re.MULTILINE)
_ERRORS = re.compile(rb"^(ue|ce)\s*:\s*(\d{1,20})\s*$", re.MULTILINE)
# '0x00000001 : 0x00001000 : R': page, size, and R retired, P pending, F failed.
_BAD_PAGE = re.compile(rb"^0x[0-9a-f]+\s*:\s*0x[0-9a-f]+\s*:\s*([RPF])\s*$", re.MULTILINE)


class ClockLevels(msgspec.Struct, frozen=True):
    """Clocks in MHz; None when the file has none."""

    current_mhz: int | None = None
    max_mhz: int | None = None


def clock_levels(data: bytes) -> ClockLevels:
    """`pp_dpm_sclk` and its siblings: a line for each level, the one in force with an asterisk. Never raises."""
    levels = [(int(level[1]), bool(level[2])) for level in _LEVEL.finditer(data)]
    return ClockLevels(
        current_mhz=next((mhz for mhz, is_current in levels if is_current), None),
        max_mhz=max((mhz for mhz, _ in levels), default=None),
    )


class BlockErrors(msgspec.Struct, frozen=True):
    """Errors of one block of the chip since the driver started; None where the file does not say (no RAS, a reset is going on)."""

    corrected: int | None = None
    uncorrected: int | None = None


def block_errors(data: bytes) -> BlockErrors:
    """`ras/*_err_count`: lines `ue: N` and `ce: N`, and on newer kernels more. Never raises."""
    counts = {line[1]: int(line[2]) for line in _ERRORS.finditer(data)}
    return BlockErrors(corrected=counts.get(b"ce"), uncorrected=counts.get(b"ue"))


def retired_pages(data: bytes) -> int:
    """`ras/gpu_vram_bad_pages`: pages that are no longer used. Never raises."""
    return sum(page[1] == b"R" for page in _BAD_PAGE.finditer(data))
