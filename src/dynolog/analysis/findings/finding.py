"""What stands out, and what it would win."""

import msgspec

from dynolog.analysis.wording import rank_list


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """`kind` names it for programs (docs/analysis.md lists them). `gain_ns` is the time to win at most, for each `per` ("step", or
    "recording" where there are no steps), on the ranks concerned; `share` that of a step. `evidence` and `advice` are sentences."""

    kind: str
    title: str
    gain_ns: float
    per: str
    share: float
    ranks: list[int]
    evidence: list[str]
    advice: list[str]


def ranked(findings: list[Finding]) -> list[Finding]:
    """The most to win first."""
    return sorted(findings, key=lambda finding: -finding.share)


def concerned(finding: Finding, ranks: int) -> str:
    """` (ranks 0-3)` for the title, unless it is all of them or the title says so itself."""
    whose = rank_list(finding.ranks) if finding.ranks else ""
    return "" if len(finding.ranks) in (0, ranks) or whose in finding.title.lower() else f" ({whose})"
