"""Nothing below a root leads out of it."""

import errno
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dynolog.sources import beneath

Opener = Callable[[int, str, int], int]


def by_walk(root_fd: int, path: str, flags: int) -> int:
    return beneath.walk_beneath(
        root_fd, path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK * (not flags & os.O_PATH)
    )


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "secret").write_text("the host's")
    inside = tmp_path / "root"
    (inside / "a" / "b").mkdir(parents=True)
    (inside / "secret").write_text("the trainer's")
    (inside / "a" / "file").write_text("file")
    (inside / "absolute").symlink_to("/secret")
    (inside / "a" / "absolute_dir").symlink_to("/a")
    (inside / "a" / "b" / "up").symlink_to("../../../../..")
    (inside / "loop").symlink_to("loop/x")
    (inside / "out").symlink_to(str(tmp_path))
    os.mkfifo(inside / "fifo")
    fd = os.open(inside, os.O_PATH)
    yield fd
    os.close(fd)


@pytest.mark.parametrize("opener", [beneath.open_beneath, by_walk])
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/secret", "the trainer's"),
        ("secret", "the trainer's"),
        ("/../../secret", "the trainer's"),
        ("/a/../secret", "the trainer's"),
        ("/a/b/up/secret", "the trainer's"),
        ("/a/absolute_dir/file", "file"),
        ("/a//b/.././file", "file"),
    ],
)
def test_every_way_up_ends_at_the_root(root: int, opener: Opener, path: str, text: str) -> None:
    fd = opener(root, path, os.O_RDONLY)
    with os.fdopen(fd) as file:
        assert file.read() == text


@pytest.mark.parametrize("opener", [beneath.open_beneath, by_walk])
@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("/absolute", errno.ELOOP),
        ("/loop/x", errno.ELOOP),
        ("/out/secret", errno.ENOENT),
        ("/secret/x", errno.ENOTDIR),
        ("/missing", errno.ENOENT),
        ("/" + "n" * 300, errno.ENAMETOOLONG),
    ],
)
def test_a_link_at_the_end_and_what_is_not_there_are_errors(root: int, opener: Opener, path: str, number: int) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError) as caught:
        opener(root, path, os.O_RDONLY)
    assert caught.value.errno == number
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("opener", [beneath.open_beneath, by_walk])
def test_a_fifo_does_not_make_us_wait(root: int, opener: Opener) -> None:
    os.close(opener(root, "/fifo", os.O_RDONLY))
    os.close(opener(root, "/", os.O_PATH))


@pytest.mark.parametrize("opener", [beneath.open_beneath, by_walk])
def test_magic_links_of_procfs_are_not_followed(opener: Opener) -> None:
    """`/proc/PID/root` and `/proc/PID/cwd` jump to where their text does not say."""
    host = os.open("/", os.O_PATH)
    try:
        with pytest.raises(OSError) as caught:
            opener(host, f"/proc/{os.getpid()}/cwd/pyproject.toml", os.O_RDONLY)
        assert caught.value.errno == errno.ELOOP
    finally:
        os.close(host)


def test_the_walk_agrees_with_the_kernel_on_any_tree(tmp_path: Path) -> None:
    """Random trees of directories, files and links; both ways open the same inode or fail alike."""
    choose = random.Random(7)
    names = ("a", "b", "c")
    for number in range(40):
        directory = choose.choice(
            [tmp_path, *[path for path in tmp_path.rglob("*") if path.is_dir() and not path.is_symlink()]]
        )
        path = directory / choose.choice(names)
        if path.exists() or path.is_symlink():
            continue
        match choose.randrange(3):
            case 0:
                path.mkdir()
            case 1:
                path.write_text(str(number))
            case _:
                path.symlink_to(choose.choice(("/", "../", "")) + "/".join(choose.choices([*names, ".."], k=2)))
    root = os.open(tmp_path, os.O_PATH)

    def look(opener: Opener, path: str) -> tuple[int, int] | int:
        try:
            fd = opener(root, path, os.O_PATH)
        except OSError as error:
            return error.errno or 0
        try:
            return os.fstat(fd).st_dev, os.fstat(fd).st_ino
        finally:
            os.close(fd)

    for _ in range(500):
        name = "/" + "/".join(choose.choices([*names, "..", "."], k=choose.randrange(1, 7)))
        if not name.endswith("."):
            assert look(beneath.open_beneath, name) == look(by_walk, name), name
    os.close(root)


def test_without_the_system_call_the_walk_is_taken(root: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A seccomp filter answers EPERM, an old kernel ENOSYS."""
    for number in (errno.ENOSYS, errno.EPERM):
        monkeypatch.setattr(beneath, "_openat2", lambda number=number: lambda *arguments: (-1, number))
        os.close(beneath.open_beneath(root, "/a/absolute_dir/file", os.O_RDONLY))
