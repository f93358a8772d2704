"""How fast the links between GPUs of one host are, by model: bytes/s in one direction, all links of a GPU together.

From the makers' data sheets, which give the sum of both directions: NVLink of V100 300 GB/s, A100 and A800 600 and 400, H100, H200 900,
H800, H20 400 and 900, B200 1,800; the A30's bridge 200; PCIe models without a bridge are left out, and so is everything between hosts.
"""

import re

_BYTES_PER_S = (
    (re.compile(r"V100-SXM"), 150e9),
    (re.compile(r"A100-(SXM|PG509)"), 300e9),
    (re.compile(r"A800-SXM"), 200e9),
    (re.compile(r"H(100|200)( 80GB HBM3|-SXM| SXM|\Z)"), 450e9),
    (re.compile(r"H800( |-)?SXM"), 200e9),
    (re.compile(r"H20\b"), 450e9),
    (re.compile(r"\bG?B200"), 900e9),
)


def link_bytes_per_s(device_name: str) -> float | None:
    """None for models whose links are not known."""
    return next((speed for pattern, speed in _BYTES_PER_S if pattern.search(device_name)), None)
