"""Names of PCI devices from the list that distributions carry (`pci.ids`, pciutils)."""

from dynolog.sources.host_files import HostFiles

_PLACES = ("usr/share/hwdata/pci.ids", "usr/share/misc/pci.ids")
_MOST_BYTES = 16 << 20


def device_names(host: HostFiles, vendor_id: int, wanted: set[int]) -> dict[int, str]:
    """Names of the `wanted` devices of one maker; what the list does not have, or no list, is nothing. Never raises."""
    for place in _PLACES:
        try:
            with open(host.path(place), "rb") as file:
                text = file.read(_MOST_BYTES)
        except OSError:
            continue
        return parse(text, vendor_id, wanted)
    return {}


def parse(text: bytes, vendor_id: int, wanted: set[int]) -> dict[int, str]:
    """The names in a list: a maker's line begins in the first column, its devices' with one tab, their boards' with two."""
    head = b"\n%04x  " % vendor_id
    start = (b"\n" + text).find(head)
    names: dict[int, str] = {}
    if start < 0:
        return names
    for line in text[start:].split(b"\n")[1:]:
        if line[:1] not in (b"\t", b"#", b""):
            break
        digits, _, name = line[1:].partition(b"  ")
        try:
            device_id = int(digits, 16) if line[:1] == b"\t" and line[1:2] != b"\t" else None
        except ValueError:
            continue
        if device_id in wanted:
            names[device_id] = name.decode("utf-8", "replace").strip()
    return names


def name_or_ids(names: dict[int, str], maker: str, vendor_id: int, device_id: int) -> str:
    """`AMD Navi 31 [Radeon RX 7900 XT]`, or `AMD 1002:744c` where nobody knows a name."""
    return f"{maker} {names.get(device_id) or f'{vendor_id:04x}:{device_id:04x}'}"
