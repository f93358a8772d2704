"""One line of the exposition: its name, labels and value."""

import re
from collections.abc import Mapping

from dynolog.exporters.prometheus.names import Family, Type, legal_label

# What Python makes of bytes of a name that are no UTF-8 (PEP 383), and cannot be encoded again.
_SURROGATES = re.compile("[\ud800-\udfff]")


class Sample:
    """The value of one family for one set of labels, as it grows or changes; equal only to itself.

    `value` is in the units of the catalogue: whole numbers stay exact however often they are added up.
    """

    __slots__ = ("_head", "_is_counter", "_is_info", "_labels", "family", "instance", "key", "seen", "text", "value")

    def __init__(
        self, family: Family, key: str, instance: str, labels: Mapping[str, str], value: float | None = None
    ) -> None:
        self.family = family
        self.key = key
        self.instance = instance
        self.value = value
        self.text = ""
        # The round of its part that last had it.
        self.seen = 0
        self._labels = labels
        self._head = ""
        self._is_counter = family.type is Type.COUNTER
        self._is_info = family.type is Type.INFO

    def take(self, value: float | str) -> bool:
        """A value has come; False when it is not one for this family: text, not finite, or a counter's negative growth."""
        if isinstance(value, str):
            if not self._is_info:
                return False
            if value != self.text or self.value is None:
                self.text = value
                self.value = 1
                self._head = ""
            return True
        # The difference is not 0 for infinities and NaN.
        if self._is_info or value - value != 0:
            return False
        if self._is_counter:
            if value < 0:
                return False
            self.value = (self.value or 0) + value
        else:
            self.value = value
        return True

    def relabel(self, labels: Mapping[str, str]) -> None:
        """The record's labels have changed: another job runs on the GPU."""
        self._labels = labels
        self._head = ""

    @property
    def labels(self) -> dict[str, str]:
        """All labels, with legal names and as text that is UTF-8; what the sample is about wins over labels of the record."""
        labels = {legal_label(name): utf8(text) for name, text in self._labels.items()}
        if self.family.type is Type.INFO:
            labels[self.family.label] = utf8(self.text)
        elif self.family.label:
            labels[self.family.label] = utf8(self.instance)
        return labels

    @property
    def scaled(self) -> float:
        """The value in the units of the family."""
        family = self.family
        value = self.value or 0
        return value if family.multiply == family.divide else value * family.multiply / family.divide

    def line(self) -> str:
        """`name{label="text"} value` and a newline, the same in the text format and in OpenMetrics."""
        return f"{self.head}{self.scaled}\n"

    @property
    def head(self) -> str:
        """The line up to the value; what tells samples apart."""
        return self._head or self._make_head()

    def _make_head(self) -> str:
        labels = ",".join(f'{name}="{escape(text)}"' for name, text in sorted(self.labels.items()))
        self._head = f"{self.family.sample}{{{labels}}} " if labels else f"{self.family.sample} "
        return self._head


def escape(text: str) -> str:
    """The text of a label between its quotes."""
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def utf8(text: str) -> str:
    """`text` with U+FFFD for bytes of a name that are no UTF-8."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)
