"""Write dist/sbom.cdx.json: what is in the packages, by the lock file they are built from, as CycloneDX 1.6. `make sbom`.

The same lock file and version give the same bytes. Nothing is asked of a network or of what happens to be installed.
"""

import argparse
import json
import re
import sys
import uuid
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
# Fixed, so that the serial number follows from the contents (RFC 9562, UUID version 5).
_NAMESPACE = uuid.UUID("6c1f3a52-0f0e-5a53-9d1e-6f0f8a7b7c10")
_PINNED = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(\[[^\]]*\])?==(?P<version>[^\s;\\]+)\s*(;\s*(?P<marker>[^\\]+?))?"
)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


class Locked(NamedTuple):
    """One line of a lock file: `hashes` are the SHA-256 of every file of this version that may be installed."""

    name: str
    version: str
    hashes: tuple[str, ...]
    marker: str = ""


def read_lock(text: str) -> list[Locked]:
    """The requirements of a lock file of pip-compile. Raises ValueError for one that is not pinned, or has no hash."""
    found = []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        requirement = line.strip()
        if not requirement or requirement.startswith("#"):
            continue
        head = requirement.partition("--hash=")[0].strip()
        pinned = _PINNED.fullmatch(head)
        hashes = tuple(sorted(_HASH.findall(requirement)))
        if pinned is None:
            raise ValueError(f"{head!r} is not pinned to one version")
        if not hashes:
            raise ValueError(f"{head!r} has no hash")
        found.append(Locked(pinned["name"], pinned["version"], hashes, pinned["marker"] or ""))
    return found


def sbom(version: str, locked: list[Locked]) -> dict[str, Any]:
    """The document. Dependencies are listed flat: a lock file does not say who needs whom."""
    root = f"pkg:pypi/dynolog@{version}"
    components = [_component(one) for one in sorted(locked)]
    contents = json.dumps([root, components], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, contents)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": "dynolog",
                "version": version,
                "purl": root,
                "licenses": [{"license": {"id": "MIT"}}],
            }
        },
        "components": components,
        "dependencies": [
            {"ref": root, "dependsOn": [component["bom-ref"] for component in components]},
            *({"ref": component["bom-ref"]} for component in components),
        ],
    }


def _component(one: Locked) -> dict[str, Any]:
    # The name of a package URL of PyPI is the normalised one (packaging.python.org, name normalization).
    purl = f"pkg:pypi/{re.sub('[-_.]+', '-', one.name).lower()}@{one.version}"
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": one.name,
        "version": one.version,
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": content} for content in one.hashes],
    }
    if one.marker:
        component["properties"] = [{"name": "pypi:environment_marker", "value": one.marker}]
    return component


def own_version() -> str:
    """Of this checkout."""
    found = re.search(r'^__version__ = "([^"]+)"', (ROOT / "src" / "dynolog" / "__init__.py").read_text(), re.MULTILINE)
    if found is None:
        sys.exit("src/dynolog/__init__.py has no version")
    return found[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lock", type=Path, default=ROOT / "packaging" / "requirements.lock")
    parser.add_argument("--output", type=Path, default=ROOT / "dist" / "sbom.cdx.json")
    arguments = parser.parse_args()
    document = sbom(own_version(), read_lock(arguments.lock.read_text()))
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(document, indent=2) + "\n")
    print(f"{arguments.output}: {len(document['components'])} components")


if __name__ == "__main__":
    main()
