"""docs/security.md: every test that it names exists, and what it says of roles and flags is so."""

import re
from pathlib import Path

from dynolog.model.flag import Settings
from dynolog.model.role import Role
from dynolog.rpc.authz_file import read_policy
from dynolog.rpc.flags import FLAGS

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "security.md").read_text()
NAMED = re.compile(r"`(tests/[a-z0-9_/]+\.py)::(test_[a-z0-9_]+)`")


def test_every_test_that_is_named_exists() -> None:
    named = NAMED.findall(PAGE)
    assert len(named) > 60
    missing = [f"{file}::{name}" for file, name in named if not re.search(rf"def {name}\(", (ROOT / file).read_text())]
    assert missing == []


def test_every_threat_names_a_test() -> None:
    rows = [
        line
        for line in PAGE.splitlines()
        if line.startswith("| ") and line.count("|") == 4 and "| defence |" not in line
    ]
    assert [row for row in rows if not NAMED.search(row)] == []


def test_the_rules_of_the_page_are_taken(tmp_path: Path) -> None:
    """All but the names of a group and a token that are not here."""
    (block,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    token = tmp_path / "token"
    token.write_text("a secret of the page")
    token.chmod(0o600)
    rules = tmp_path / "authz.toml"
    rules.write_text(block.replace("/etc/dynolog/ci.token", str(token)).replace('group = ["oncall"]', "gid = 4321"))
    rules.chmod(0o600)
    policy = read_policy(str(rules))
    assert [rule.role for rule in policy.rules] == [Role.NONE, Role.ADMIN, Role.TRACE, Role.TRACE, Role.READ]


def test_every_flag_that_is_named_is_one() -> None:
    flags = Settings(FLAGS).flags
    for name in re.findall(r"`--(rpc_[a-z_]+)", PAGE):
        assert name in flags
