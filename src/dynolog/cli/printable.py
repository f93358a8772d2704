"""Makes text from elsewhere safe to show: names of processes and files can hold terminal escape sequences."""


def printable(text: str) -> str:
    r"""The text on one line, with everything that is not printable as `\x1b`, `\n`, `\u202e`: no byte of it steers a terminal."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode() for char in text
    )


def printable_json(text: str) -> str:
    r"""JSON text with unprintable characters as `\uXXXX`, which means the same to whoever parses it.

    Line ends and tabs between the values become spaces, so that the answer is one line.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _json_escape(char) for char in text)


def _json_escape(char: str) -> str:
    if char in "\n\r\t":
        return " "
    code = ord(char)
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 | code >> 10:04x}\\u{0xDC00 | code & 0x3FF:04x}"
