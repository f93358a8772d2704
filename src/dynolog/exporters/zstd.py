"""zstd, from Python 3.14's own library or from `zstandard` (extra `zstd`); imported when used."""

from typing import Protocol

from dynolog.model.errors import FlagError

_LEVEL = 3


class Compressor(Protocol):
    """One stream."""

    def compress(self, data: bytes, /) -> bytes:
        """What is ready of the stream after these bytes."""
        ...

    def flush(self) -> bytes:
        """The rest of the stream."""
        ...


def new_compressor(flag: str) -> Compressor:
    """A compressor for one stream. Raises FlagError, which names the flag, when no library is there."""
    import importlib  # noqa: PLC0415 - which of the two is there shows only here
    import sys  # noqa: PLC0415

    if sys.version_info >= (3, 14):
        own: Compressor = importlib.import_module("compression.zstd").ZstdCompressor(level=_LEVEL)
        return own
    try:
        library = importlib.import_module("zstandard")
    except ImportError:
        raise FlagError(f"--{flag} needs the library zstandard: pip install 'dynolog[zstd]'") from None
    compressor: Compressor = library.ZstdCompressor(level=_LEVEL).compressobj()
    return compressor
