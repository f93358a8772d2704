"""Build the Debian and RPM packages for x86-64 and arm64 into dist/: `make deb`, `make rpm`.

One tree for both: our code and every dependency in a site directory of their own, with the compiled modules of every CPython
that a host may have side by side (their file names carry the version), so that the host's Python packages do not matter.
Bytecode is made when it is installed, by the Python that will run it. nfpm packs it; built twice from one commit it is the same.
"""

import argparse
import datetime
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from tools.man_pages import write_man_pages

ROOT = Path(__file__).resolve().parents[1]
PACKAGING = ROOT / "packaging"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
# nfpm's name of each architecture, and the machine in the names of wheels.
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
# The oldest C library of these wheels is 2.28: Debian 10, Ubuntu 20.04, RHEL 8.
PLATFORMS = ("manylinux2014", "manylinux_2_17", "manylinux_2_28")
COMMANDS = {
    "dynolog": "sbin",
    "dyno": "bin",
    "dyno-run": "bin",
    "unitrace": "bin",
}
# Parts of libraries that no running program needs.
UNUSED_FOLDERS = (
    "google/protobuf/testdata/",
    "google/protobuf/compiler/",
    "markdown_it/cli/",
    "numpy/_core/lib/",
    "numpy/_pyinstaller/",
    "numpy/f2py/",
    "numpy/random/lib/",
)
# These say by which Python a wheel was built: the one of the oldest is as good as any.
BUILD_NOTES = ("numpy/__config__.py",)
MAINTAINER = "dynolog maintainers <dynolog@localhost.localdomain>"
COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/dyno",
    "zsh": "usr/share/zsh/vendor-completions/_dyno",
    "fish": "usr/share/fish/vendor_completions.d/dyno.fish",
}
PLACES = {
    "dynolog.service": "usr/lib/systemd/system/dynolog.service",
    "dynolog-user.service": "usr/lib/systemd/system/dynolog-user.service",
    "dynolog.sysusers": "usr/lib/sysusers.d/dynolog.conf",
    "dynolog.sysctl": "usr/lib/sysctl.d/60-dynolog.conf",
}


def version() -> str:
    """The version, from its one place."""
    found = re.search(r'^__version__ = "(.+)"$', (ROOT / "src/dynolog/__init__.py").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def download_wheels(machine: str, cache: Path) -> list[Path]:
    """The locked wheels of every Python version for one machine; those that are there are not fetched again."""
    wheels = {wheel.name: wheel for python in PYTHONS for wheel in download_wheels_of(python, machine, cache)}
    return list(wheels.values())


def download_wheels_of(python: str, machine: str, cache: Path) -> list[Path]:
    """The same of one Python version ("3.11")."""
    folder = cache / f"{machine}-{python}"
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--require-hashes"]
    command += ["--no-deps", "--only-binary=:all:", "--implementation", "cp", "--python-version", python]
    command += [f"--platform={name}_{machine}" for name in PLATFORMS]
    command += ["--dest", str(folder), "--requirement", str(PACKAGING / "requirements.lock")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the wheels of Python {python} for {machine} cannot be had:\n{done.stderr}")
    return sorted(folder.glob("*.whl"))


def unpack(wheels: list[Path], site: Path) -> None:
    """All wheels into one site directory. Raises SystemExit when two of them differ in a file that both have."""
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.infolist():
                if member.is_dir() or not _is_wanted(member.filename):
                    continue
                target, content = site / member.filename, _module_only(member.filename, archive.read(member))
                if target.exists() and member.filename in BUILD_NOTES:
                    continue
                if target.exists() and target.read_bytes() != content:
                    raise SystemExit(f"{wheel.name}: {member.filename} differs from the one of another wheel")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)


def _is_wanted(name: str) -> bool:
    """Not: what a running program never reads, and what names the one wheel that it came in."""
    folder, _, file = name.rpartition("/")
    if ".dist-info" in folder:
        return "license" in name.lower() or file in ("METADATA", "NOTICE", "COPYING")
    if name.startswith(UNUSED_FOLDERS) or "/tests/" in name or ".data/" in name:
        return False
    if file.startswith(("_cffi.", "_simd.")) or "_tests." in file:
        return False
    return not name.endswith((".pyi", ".pyx", ".pxd", ".c", ".h", "py.typed"))


def _module_only(name: str, content: bytes) -> bytes:
    """A module that nobody can execute has no interpreter line."""
    return content.partition(b"\n")[2] if name.endswith(".py") and content.startswith(b"#!") else content


def build_site(machine: str, site: Path, cache: Path) -> None:
    """Our code and all that it needs, side by side."""
    unpack(download_wheels(machine, cache), site)
    ours = shutil.ignore_patterns("__pycache__", "py.typed")
    shutil.copytree(ROOT / "src/dynolog", site / "dynolog", ignore=ours)


def build_tree(machine: str, work: Path, cache: Path) -> Path:
    """The files of the package as they will lie below /, and its scripts beside them."""
    tree = work / machine
    shutil.rmtree(tree, ignore_errors=True)
    lib = tree / "usr/lib/dynolog"
    build_site(machine, lib / "site", cache)
    for name, folder in COMMANDS.items():
        _fill("command.py.in", lib / f"{name}.py", {"FUNCTION": name.replace("-", "_")})
        _fill("launcher.sh.in", tree / "usr" / folder / name, {"COMMAND": name}, 0o755)
    for name, place in PLACES.items():
        _fill(name, tree / place, {})
    _write_completions(tree)
    write_man_pages(tree / "documents", version(), _commit_time())
    _write_documents(tree)
    return tree


def _fill(name: str, target: Path, words: dict[str, str], mode: int = 0o644) -> None:
    text = (PACKAGING / "files" / name).read_text()
    for word, value in words.items():
        text = text.replace(f"@{word}@", value)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    target.chmod(mode)


def _write_completions(tree: Path) -> None:
    for shell, place in COMPLETIONS.items():
        command = [sys.executable, "-P", "-m", "dynolog.cli.main", "completion", shell]
        script = subprocess.run(command, check=True, capture_output=True).stdout
        (tree / place).parent.mkdir(parents=True, exist_ok=True)
        (tree / place).write_bytes(script)


def _write_documents(tree: Path) -> None:
    folder = tree / "documents" / "doc"
    folder.mkdir(parents=True)
    licence = (ROOT / "LICENSE").read_text()
    (folder / "copyright").write_text(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
        "Upstream-Name: dynolog\n\nFiles: *\nCopyright: the dynolog authors\nLicense: Expat\n"
        + "".join(f" {line or '.'}\n" for line in licence.splitlines())
        + "\nFiles: usr/lib/dynolog/site/*\nCopyright: their authors\nLicense: see-their-metadata\n"
        " Each distribution there has its licence in its own .dist-info directory.\n"
    )
    # gzip without a time, so that what is built twice is the same.
    (folder / "history.gz").write_bytes(gzip.compress((ROOT / "CHANGELOG.md").read_bytes(), 9, mtime=0))
    entry = {
        "semver": version(),
        "date": _mtime(),
        "packager": MAINTAINER,
        "changes": [{"note": "See history.gz."}],
        "deb": {"urgency": "medium", "distributions": ["unstable"]},
    }
    (tree / "changelog.yaml").write_text(json.dumps([entry]))


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def _commit_time() -> int:
    return int(os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct"))


def _mtime() -> str:
    return datetime.datetime.fromtimestamp(_commit_time(), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _document_entries(tree: Path, kind: str) -> str:
    """The documentation one file at a time, because only rpm marks it, and nfpm leaves what is marked out of a deb."""
    lines = []
    for file in [*sorted((tree / "documents").rglob("*.gz")), tree / "documents/doc/copyright"]:
        folder = {"doc": "doc/dynolog"}.get(file.parent.name, f"man/{file.parent.name}")
        lines += [f"  - src: {file}", f"    dst: /usr/share/{folder}/{file.name}", "    file_info: {mode: 0644}"]
        lines += ["    type: doc"] if kind == "rpm" else []
    return "\n".join(lines)


def pack(tree: Path, arch: str, kind: str, dist: Path, release: int = 1) -> Path:
    """One package; its path. A higher `release` of the same version is an upgrade."""
    dist.mkdir(parents=True, exist_ok=True)
    text = (PACKAGING / "nfpm.yaml").read_text()
    words = {
        "ARCH": arch,
        "VERSION": version(),
        "TREE": str(tree),
        "MTIME": _mtime(),
        "WHO": MAINTAINER,
        "RELEASE": str(release),
    }
    for word, value in {**words, "DOCUMENTS": _document_entries(tree, kind)}.items():
        text = text.replace(f"${{{word}}}", value)
    config = tree / "nfpm.yaml"
    config.write_text(text)
    name = (
        f"dynolog_{version()}-{release}_{arch}.deb"
        if kind == "deb"
        else f"dynolog-{version()}-{release}.{MACHINES[arch]}.rpm"
    )
    nfpm = Path(sys.executable).with_name("nfpm")
    command = [str(nfpm), "package", "--config", str(config), "--packager", kind, "--target", str(dist / name)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return dist / name


def main() -> None:
    """Build what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kinds", nargs="+", choices=("deb", "rpm"))
    parser.add_argument("--arch", action="append", choices=tuple(MACHINES), help="one architecture only")
    parser.add_argument("--release", type=int, default=1, help="counts the packages of one version (1)")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    arguments = parser.parse_args()
    work = ROOT / "build" / "packages"
    for arch in arguments.arch or tuple(MACHINES):
        tree = build_tree(MACHINES[arch], work, ROOT / "build" / "wheels")
        for kind in arguments.kinds:
            package = pack(tree, arch, kind, arguments.dist, arguments.release)
            print(
                f"{package.relative_to(ROOT) if package.is_relative_to(ROOT) else package}: {package.stat().st_size / 1e6:.1f} MB"
            )


if __name__ == "__main__":
    main()
