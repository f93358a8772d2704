"""The file of `--exporters_config`: which sources and metrics an exporter gets, under which names, how often.

[otlp]                                  # an exporter, as `dyno exporters` names it
sources = ["kernel"]                    # default: all
metrics = ["cpu_*", "rx_bytes.eth*"]    # names or keys, * and ? stand for anything; default: all
without = ["dynolog_*"]
interval_s = 10                         # what came in 10 s becomes one record
rename = { cpu_u = "cpu_user" }
"""

import re
from collections.abc import Callable, Iterable, Mapping

import msgspec

from dynolog.model.errors import FlagError
from dynolog.model.metric import Catalogue

FLAG = "exporters_config"
_MOST_INTERVAL_S = 86400.0
_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What one exporter gets. Empty `sources` or `metrics`: all. `interval_s` 0: every record as it comes."""

    sources: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    interval_s: float = 0.0
    rename: Mapping[str, str] = {}


def read_rules(path: str, exporters: Iterable[str], catalogue: Catalogue) -> dict[str, Rules]:
    """The tables of the file, by exporter. Raises FlagError that names the file, the table and what to type instead."""
    import tomllib  # noqa: PLC0415 - only when the flag is given

    try:
        with open(path, "rb") as file:
            tables = tomllib.load(file)
    except OSError as error:
        raise FlagError(f"--{FLAG}={path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FlagError(f"--{FLAG}={path} is not TOML: {error}") from error
    known = tuple(exporters)
    return {name: _rules(path, name, table, known, catalogue) for name, table in tables.items()}


def _rules(path: str, name: str, table: object, known: tuple[str, ...], catalogue: Catalogue) -> Rules:
    where = f"--{FLAG}={path}: [{name}]"
    if name not in known:
        raise FlagError(f"{where}: there is no such exporter{_near(name, known)}; there are {', '.join(sorted(known))}")
    if not isinstance(table, dict):
        raise FlagError(f"{where} should be a table: type [{name}] on a line of its own, and below it interval_s = 10")
    keys = Rules.__struct_fields__
    for key in table:
        if key not in keys:
            raise FlagError(f"{where}: {key} means nothing{_near(key, keys)}; type one of {', '.join(keys)}")
    rules = Rules(
        sources=_texts(where, "sources", table),
        metrics=_texts(where, "metrics", table),
        without=_texts(where, "without", table),
        interval_s=_interval(where, table.get("interval_s", 0.0)),
        rename=_renames(where, table.get("rename", {})),
    )
    _check_names(where, rules, catalogue)
    return rules


def _texts(where: str, key: str, table: Mapping[str, object]) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(text, str) and text for text in value):
        raise FlagError(f'{where}: {key} should be a list of texts: type {key} = ["one", "two*"]')
    if key == "metrics" and key in table and not value:
        raise FlagError(f"{where}: metrics is empty, so nothing would be sent: leave it out for all")
    return tuple(value)


def _interval(where: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST_INTERVAL_S:
        raise FlagError(f"{where}: interval_s should be a number of seconds up to 86400: type interval_s = 10")
    return float(value)


def _renames(where: str, value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(new, str) for new in value.values()):
        raise FlagError(f'{where}: rename should be a table of names: type rename = {{ cpu_u = "cpu_user" }}')
    for old, new in value.items():
        if not _NAME.match(new):
            raise FlagError(f"{where}: {old} cannot be renamed to {new!r}: type letters, digits and _ only")
    return dict(value)


def _check_names(where: str, rules: Rules, catalogue: Catalogue) -> None:
    from fnmatch import fnmatchcase  # noqa: PLC0415 - only when the flag is given

    names = {metric.name for metric in catalogue}
    for pattern in (*rules.metrics, *rules.without):
        # A key names a device that may come later.
        is_key = "." in pattern or catalogue.resolve(pattern) is not None
        if not is_key and not any(fnmatchcase(name, pattern) for name in names):
            raise FlagError(f"{where}: no metric is called {pattern}{_near(pattern, names)}; `dyno metrics` lists them")
    for old, new in rules.rename.items():
        if old not in names:
            raise FlagError(f"{where}: rename: no metric is called {old}{_near(old, names)}; `dyno metrics` lists them")
        if new in names and new not in rules.rename:
            raise FlagError(f"{where}: rename: {old} cannot become {new}: another metric has that name")
    twice = [new for new in rules.rename.values() if list(rules.rename.values()).count(new) > 1]
    if twice:
        raise FlagError(f"{where}: rename: two metrics would be called {twice[0]}")


def _near(word: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only for an error

    near = get_close_matches(word, known, 1, 0.6)
    return f": did you mean {near[0]}?" if near else ""


def matcher(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """Whether a text fits any of the patterns; nothing fits none of them."""
    import fnmatch  # noqa: PLC0415 - only when the flag is given

    expression = re.compile("|".join(map(fnmatch.translate, patterns)) if patterns else r"(?!)")
    return lambda text: expression.match(text) is not None
