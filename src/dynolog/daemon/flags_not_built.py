"""Flags of the public Dynolog whose parts are not in this version: they parse, and say so at start.

When a part is built, its flags move to where it is registered.
"""

from dynolog.model.flag import Flag, FlagValue

_TLS = "TLS for RPC is not in this version yet"


def _flag(name: str, default: FlagValue, what: str, why: str, section: str) -> Flag:
    return Flag(
        name=name, default=default, help=f"{what} (not built yet)", section=section, not_built=f"--{name}: {why}"
    )


NOT_BUILT_FLAGS = (
    _flag("certs_dir", "", "certificates of the RPC server", _TLS, "rpc"),
)
