"""The locks are pinned and hashed, and what is in the packages is listed as CycloneDX has it."""

import json
import runpy
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = Path(__file__).resolve().parents[3]
# The tools are no package of ours that could be imported.
TOOL = runpy.run_path(str(ROOT / "tools" / "make_sbom.py"))
Locked, own_version, read_lock, sbom = (TOOL[name] for name in ("Locked", "own_version", "read_lock", "sbom"))
LOCKS = ("requirements.lock", "requirements-dev.lock", "packaging/requirements.lock")
TEXT = f"""# a remark
A.b_c==1.0 \\
    --hash=sha256:{"1" * 64} \\
    --hash=sha256:{"0" * 64}
zstandard==0.25.0 ; python_version < "3.14" \\
    --hash=sha256:{"2" * 64}
"""


@pytest.mark.parametrize("lock", LOCKS)
def test_every_dependency_is_pinned_to_files_by_their_hashes(lock: str) -> None:
    """What a registry serves under the same version tomorrow is not installed."""
    assert read_lock((ROOT / lock).read_text())


def test_a_lock_is_read_as_pip_reads_it() -> None:
    assert read_lock(TEXT) == [
        Locked("A.b_c", "1.0", ("0" * 64, "1" * 64)),
        Locked("zstandard", "0.25.0", ("2" * 64,), 'python_version < "3.14"'),
    ]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [("a>=1 --hash=sha256:" + "0" * 64, "not pinned"), ("a==1", "no hash"), ("git+https://x", "not pinned")],
)
def test_what_is_not_pinned_or_has_no_hash_is_refused(line: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        read_lock(line)


@pytest.mark.parametrize("lock", LOCKS)
def test_the_list_follows_the_schema(lock: str) -> None:
    """By the schema that CycloneDX publishes, without a network."""
    document = sbom(own_version(), read_lock((ROOT / lock).read_text()))
    problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(document))
    assert problem is None, problem


def test_a_document_that_breaks_the_schema_is_noticed() -> None:
    """The test above can fail."""
    document = sbom("1.0", read_lock(TEXT))
    document["components"][0]["hashes"][0]["alg"] = "SHA-1024"
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(document)) is not None


def test_the_same_lock_gives_the_same_document_and_another_one_another_number() -> None:
    locked = read_lock(TEXT)
    assert sbom("1.0", locked) == sbom("1.0", list(reversed(locked)))
    assert sbom("1.0", locked)["serialNumber"] != sbom("1.1", locked)["serialNumber"]
    assert [component["purl"] for component in sbom("1.0", locked)["components"]] == [
        "pkg:pypi/a-b-c@1.0",
        "pkg:pypi/zstandard@0.25.0",
    ]


def test_the_packages_are_built_from_the_lock_that_is_listed() -> None:
    names = {one.name for one in read_lock((ROOT / "packaging" / "requirements.lock").read_text())}
    assert {"msgspec", "opentelemetry-proto", "urllib3"} <= names
