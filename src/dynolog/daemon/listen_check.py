"""What `dynolog --check` says of addresses to listen on: nothing is listened on, and the flags may be meant for another machine."""

import ipaddress

from dynolog.model.errors import FlagError
from dynolog.model.flag import Settings
from dynolog.sources.host_files import HostFiles
from dynolog.sources.own_addresses import read_addresses

_FLAG = "rpc_bind_address"
_NAMES = ("localhost", "*")
_MOST_LISTED = 8


def check_addresses(settings: Settings, host: HostFiles | None = None) -> tuple[str, ...]:
    """A sentence for each flag with addresses that this machine does not have. Raises FlagError for what is none at all."""
    asked = {f"--{_FLAG}": [one for one in settings.names(_FLAG) if one not in _NAMES]}
    if settings.on("use_prometheus") and (address := settings.text("prometheus_address")) not in _NAMES:
        asked["--prometheus_address"] = [address]
    there = read_addresses(host or HostFiles("/"))
    if there is None:
        return ()
    return tuple(
        f"{flag}: {', '.join(lacking)} {'is no address' if len(lacking) == 1 else 'are no addresses'} of this machine now, so the "
        f"daemon would not start here; it has {_listed(there)}"
        for flag, addresses in asked.items()
        if (lacking := [address for address in addresses if _is_lacking(flag, address, there)])
    )


def _is_lacking(flag: str, text: str, there: tuple[str, ...]) -> bool:
    try:
        address = ipaddress.ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        raise FlagError(f"{flag}={text} is not an IP address: type 127.0.0.1, ::1, or :: for all") from None
    if address.is_unspecified or (address.version == 4 and address.is_loopback):
        return False
    if address.version == 6 and not any(":" in one for one in there):  # with IPv6 off it is left out
        return False
    return str(address) not in there


def _listed(there: tuple[str, ...]) -> str:
    more = f" and {len(there) - _MOST_LISTED} more" if len(there) > _MOST_LISTED else ""
    return f"{', '.join(there[:_MOST_LISTED]) or 'none'}{more}"
