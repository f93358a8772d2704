"""The errors of the product.

DynologError
├── SourceUnavailable     a kernel interface or library is missing, forbidden or broken
├── FlagError             a flag, flag file or combination of flags that cannot be used
├── AddressInUse          a port, socket or name that somebody else holds
├── WireError             bytes from outside that do not follow a protocol
└── RequestError          a request that is understood and refused, with a code a program can test
"""

# Codes of what is refused only because of what else is going on.
TEMPORARY = ("busy", "overloaded")


class DynologError(Exception):
    """Root of every error that the product raises on purpose; its text is for a person."""


class SourceUnavailable(DynologError):  # noqa: N818 - it is a state of the world, said once
    """A source cannot be read: what, why, and what would give it.

    `remedy` is a sentence that says what to do, or "" when nothing can be done (the hardware is not there).
    """

    def __init__(self, source: str, reason: str, remedy: str = "") -> None:
        super().__init__(f"{source}: {reason}" + (f": {remedy}" if remedy else ""))
        self.source = source
        self.reason = reason
        self.remedy = remedy


class FlagError(DynologError):
    """A flag that cannot be used, with what to type instead."""


class AddressInUse(DynologError):  # noqa: N818 - it is a state of the world, said once
    """A port, socket file or IPC name is held by somebody else; the sentence says by whom where that can be known."""


class WireError(DynologError):
    """A message from outside that does not follow its protocol; the sender is dropped, nothing else."""


class RequestError(DynologError):
    """A request that was understood and is refused.

    `code` is one word in snake_case that programs may test (`not_found`, `busy`, `forbidden`, `bad_request`...);
    the text is a sentence for a person that says what to do.
    """

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence

    @property
    def is_temporary(self) -> bool:
        """Whether the same request may be carried out a moment later."""
        return self.code in TEMPORARY
