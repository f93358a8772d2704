"""What became of a reload."""

import msgspec


class ReloadReport(msgspec.Struct, frozen=True, kw_only=True):
    """`changed` flags (`--name=value`) and files are in effect, `waiting` flags take effect at the next start. `errors` are sentences about
    what could not be read: there everything stays as it was; `warnings` are about what could.
    """

    changed: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
