"""The packages on a real machine: install, serve, survive, upgrade, remove, purge. Run by `make test-packages`.

The machine is a Debian in namespaces, with a real systemd (tests/system/machine.py). Needs root and Debian's debootstrap, lintian,
rpm and rpmlint.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dynolog
from fakes.scripted_trainer import ScriptedTrainer
from integration.harness import eventually
from system.machine import Machine, copy_of, debootstrap, running_machine

REPOSITORY = Path(__file__).resolve().parents[2]
TRACE = json.dumps(
    {"traceEvents": [{"ph": "X", "name": "step", "cat": "cpu_op", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}
)


def build(dist: Path, *arguments: str) -> None:
    """The packages for this machine."""
    command = [sys.executable, "-m", "tools.build_packages", "--dist", str(dist), *arguments]
    subprocess.run(command, cwd=REPOSITORY, check=True, timeout=900)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A deb, its upgrade, and an rpm."""
    directory: Path = tmp_path_factory.mktemp("dist")
    build(directory, "--arch", "amd64", "deb", "rpm")
    build(directory, "--arch", "amd64", "--release", "2", "deb")
    return directory


@pytest.fixture(scope="module")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Debian that never saw the product."""
    directory: Path = tmp_path_factory.mktemp("debian") / "base"
    debootstrap(directory)
    return directory


@pytest.fixture(scope="module")
def machine(debian: Path, dist: Path) -> Iterator[Machine]:
    """A machine with the package installed; the checks below tell its story in their order."""
    root = copy_of(debian, debian.parent / "machine")
    for package in dist.glob("*.deb"):
        (root / "root" / package.name).write_bytes(package.read_bytes())
    with running_machine(root) as booted:
        yield booted


def package(dist: Path, pattern: str) -> Path:
    (found,) = dist.glob(pattern)
    return found


def test_lintian_has_no_errors(dist: Path) -> None:
    said = subprocess.run(
        ["lintian", "--allow-root", "--fail-on", "error", str(package(dist, "*-1_*.deb"))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stdout


def test_rpmlint_has_no_errors(dist: Path) -> None:
    command = ["rpmlint", "-c", str(REPOSITORY / "packaging" / "rpmlint.toml"), str(package(dist, "*.rpm"))]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert " 0 errors" in said.stdout, said.stdout


def test_it_works_from_any_directory_it_was_unpacked_to(dist: Path, tmp_path: Path) -> None:
    subprocess.run(["dpkg-deb", "-x", str(package(dist, "*-1_*.deb")), str(tmp_path)], check=True)
    for command in ("usr/sbin/dynolog", "usr/bin/dyno"):
        said = subprocess.run(
            [str(tmp_path / command), "--help"],
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": "/nonexistent"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert "--" in said.stdout
    trace = REPOSITORY / "tests" / "data" / "traces" / "public" / "a100_triton.json.gz"
    said = subprocess.run(
        [str(tmp_path / "usr/bin/dyno"), "analyze", str(trace)],
        env={"PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "NVIDIA A100" in said.stdout


@pytest.mark.parametrize(("architecture", "elf_machine"), [("amd64", 62), ("arm64", 183)])
def test_every_compiled_file_is_for_the_machine_of_its_package(
    dist: Path, tmp_path: Path, architecture: str, elf_machine: int
) -> None:
    """e_machine of elf(5): EM_X86_64, EM_AARCH64."""
    if architecture == "arm64":
        build(tmp_path, "--arch", "arm64", "deb")
    deb = package(tmp_path if architecture == "arm64" else dist, "*-1_*.deb")
    subprocess.run(["dpkg-deb", "-x", str(deb), str(tmp_path / "tree")], check=True)
    headers = {path: path.read_bytes()[:20] for path in (tmp_path / "tree").rglob("*.so*") if path.is_file()}
    assert len(headers) > 20
    assert {(head[:4], int.from_bytes(head[18:20], "little")) for head in headers.values()} == {
        (b"\x7fELF", elf_machine)
    }


def test_the_rpm_holds_the_same_and_its_scripts_are_sound(dist: Path, tmp_path: Path) -> None:
    rpm = str(package(dist, "*.rpm"))
    subprocess.run(["rpm", "--root", str(tmp_path), "--nodeps", "--noscripts", "-i", rpm], check=True)
    deb = package(dist, "*-1_*.deb")
    listed = subprocess.run(["dpkg-deb", "-c", str(deb)], capture_output=True, text=True, check=True).stdout
    files = {line.split()[5].removeprefix("./") for line in listed.splitlines() if line.startswith("-")}
    only_deb = {name for name in files if not (tmp_path / name).exists()}
    assert only_deb == {"usr/share/lintian/overrides/dynolog", "usr/share/doc/dynolog/changelog.Debian.gz"}
    said = subprocess.run([str(tmp_path / "usr/bin/dyno"), "--help"], capture_output=True, text=True, check=True)
    assert "gputrace" in said.stdout
    for script in (REPOSITORY / "packaging" / "scripts").iterdir():
        subprocess.run(["sh", "-n", str(script)], check=True)


def test_one_file_holds_everything(tmp_path: Path) -> None:
    """Unpacked once, into a directory that nobody else may write to; the daemon and dyno by name or first word."""
    subprocess.run([sys.executable, "-m", "tools.build_onefile", "--dist", str(tmp_path)], cwd=REPOSITORY, check=True)
    onefile = package(tmp_path, "*.pyz")
    (tmp_path / "dyno").symlink_to(onefile)
    env = {"PATH": "/usr/bin:/bin", "DYNOLOG_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": "/nonexistent"}

    def says(*command: str) -> str:
        done = subprocess.run([sys.executable, *command], env=env, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    assert says(str(onefile), "--version") == f"dynolog {dynolog.__version__}\n"
    (directory,) = (tmp_path / "cache").iterdir()
    assert "no daemon answers" in says(str(onefile), "dyno", "status", "--port=1")
    assert "no daemon answers" in says(str(tmp_path / "dyno"), "status", "--port=1")
    assert list((tmp_path / "cache").iterdir()) == [directory]
    directory.chmod(0o777)
    assert "may be written by others" in says(str(onefile), "--version")


def test_the_installed_service_serves(machine: Machine) -> None:
    said = machine.run("dpkg -i /root/dynolog_*-1_*.deb")
    assert "systemctl enable --now dynolog" in said
    assert machine.run("cat /proc/sys/net/unix/max_dgram_qlen").strip() == "512" or "sysctl" not in said
    machine.run("systemctl enable --now dynolog")
    assert machine.property("dynolog", "StatusText").startswith("serves on [::1]:1778")
    assert '{"status":1}' in machine.run("dyno status")
    assert machine.run("dynolog --check --flagfile=/etc/dynolog.gflags").endswith("the flags are fine\n")


def test_the_sandbox_leaves_tracing_alone(machine: Machine) -> None:
    """A process of another user, in a home directory that the unit hides: looked at, recorded, checked, fetched."""
    machine.run("useradd --create-home worker")
    uid = int(machine.run("id -u worker"))
    place = ("nsenter", "-t", str(machine.pid), "-a")
    with ScriptedTrainer("dynolog", uid=uid, prefix=place, python="/usr/bin/python3") as trainer:
        assert trainer.poll() == ""
        asking = machine.popen(
            *("dyno", "gputrace", "--log-file", "/home/worker/trace.json", "--duration-ms", "100", "--json"),
            *("--fetch", "/root/traces", "--wait-timeout", "60"),
        )
        config = eventually(trainer.poll, 60, "a config")
        (path,) = (line.partition("=")[2] for line in config.splitlines() if line.startswith("ACTIVITIES_LOG_FILE="))
        written = path.replace(".json", f"_{trainer.host_pid}.json")
        trainer.poll(mask=1)  # while libkineto records it asks for one kind of config only
        eventually(lambda: "recording" in machine.run("dyno trace"), 60, "it is seen to record")
        trainer.write(written, TRACE)
        said, _ = asking.communicate(timeout=120)
    assert asking.returncode == 0, said
    assert "written" in said
    assert machine.run("cat /root/traces/*.json") == TRACE + "\n"


def test_a_reload_keeps_it_running_with_new_flags(machine: Machine) -> None:
    pid = machine.property("dynolog", "MainPID")
    machine.run("sed -i 's/^--reporting_interval_s=.*/--reporting_interval_s=2/' /etc/dynolog.gflags")
    machine.run("systemctl reload dynolog")
    assert "reporting_interval_s=2" in eventually(
        lambda: machine.run("grep 'now in effect' /var/log/dynolog/dynolog.log", check=False)
    )
    assert machine.property("dynolog", "MainPID") == pid


def test_logrotate_turns_the_log_over_and_nothing_is_lost(machine: Machine) -> None:
    machine.run("logrotate --force /etc/logrotate.d/dynolog")
    assert "dynolog is ready" in machine.run("cat /var/log/dynolog/dynolog.log.1")
    assert eventually(lambda: machine.run("cat /var/log/dynolog/dynolog.log"), what="a line in the new file")


def test_one_that_hangs_is_started_again_by_the_watchdog(machine: Machine) -> None:
    machine.run(
        "mkdir -p /run/systemd/system/dynolog.service.d;"
        " printf '[Service]\\nWatchdogSec=3\\nRestartSec=1\\n' > /run/systemd/system/dynolog.service.d/fast.conf;"
        " systemctl daemon-reload; systemctl restart dynolog"
    )
    pid = machine.property("dynolog", "MainPID")
    machine.run(f"kill -STOP {pid}")
    eventually(lambda: machine.property("dynolog", "NRestarts") == "1", 90, "the watchdog acts")
    eventually(lambda: '{"status":1}' in machine.run("dyno status", check=False), 60, "it serves again")
    assert machine.property("dynolog", "MainPID") != pid


def test_one_that_is_killed_comes_back(machine: Machine) -> None:
    machine.run("systemctl restart dynolog; kill -KILL $(systemctl show --value --property=MainPID dynolog)")
    eventually(lambda: '{"status":1}' in machine.run("dyno status", check=False), 60, "it serves again")


def test_wrong_flags_are_said_and_not_tried_again(machine: Machine) -> None:
    machine.run("cp /etc/dynolog.gflags /root/good; echo --port=99999 >> /etc/dynolog.gflags")
    machine.run("systemctl restart dynolog", check=False)
    eventually(lambda: machine.property("dynolog", "ActiveState") == "failed", 30)
    assert "--port" in machine.run("journalctl -u dynolog --no-pager")
    machine.run("mv /root/good /etc/dynolog.gflags; systemctl restart dynolog")


def test_without_root(machine: Machine) -> None:
    """The other unit takes its place: the same commands, less to see, no capability."""
    machine.run("systemctl start dynolog-user")
    assert machine.property("dynolog", "ActiveState") == "inactive"
    assert '{"status":1}' in machine.run("dyno --unix /run/dynolog/dynolog.sock status")
    pid = machine.property("dynolog-user", "MainPID")
    status = machine.run(f"cat /proc/{pid}/status")
    assert "CapEff:\t0000000000000000" in status
    assert "Uid:\t0\t" not in status
    machine.run("systemctl start dynolog")
    assert machine.property("dynolog-user", "ActiveState") == "inactive"


@pytest.mark.parametrize(("unit", "limit"), [("dynolog", 4.0), ("dynolog-user", 2.5)])
def test_what_the_units_expose(machine: Machine, unit: str, limit: float) -> None:
    said = machine.run(f"systemd-analyze security --no-pager {unit}.service")
    (line,) = (line for line in said.splitlines() if "Overall exposure level" in line)
    assert float(line.partition(".service: ")[2].split()[0]) <= limit
    verified = machine.run(f"systemd-analyze verify /usr/lib/systemd/system/{unit}.service", check=False)
    assert [line for line in verified.splitlines() if "Command 'man" not in line] == []


def test_an_upgrade_keeps_the_configuration_and_restarts_what_ran(machine: Machine) -> None:
    machine.run("echo '# mine' >> /etc/dynolog.gflags")
    pid = machine.property("dynolog", "MainPID")
    machine.run("dpkg -i --force-confdef /root/dynolog_*-2_*.deb")
    assert machine.property("dynolog", "ActiveState") == "active"
    assert machine.property("dynolog", "MainPID") != pid
    assert "# mine" in machine.run("cat /etc/dynolog.gflags")


def test_removing_stops_it_and_purging_leaves_nothing(machine: Machine) -> None:
    machine.run("dpkg --remove dynolog")
    running = "for exe in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $exe; echo; done"
    assert "/usr/lib/dynolog" not in machine.run(running, check=False)
    assert machine.run("ls /usr/lib/dynolog", check=False).endswith("No such file or directory\n")
    assert "# mine" in machine.run("cat /etc/dynolog.gflags"), "a removed package keeps its configuration"
    machine.run("dpkg --purge dynolog")
    left = machine.run("find / -xdev -name '*dynolog*' ! -path '/proc/*' ! -path '/root/*' ! -path '/sys/*'")
    assert [line for line in left.splitlines() if "/var/lib/systemd/" not in line] == []
