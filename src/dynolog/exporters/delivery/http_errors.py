"""What a person reads of an error that came instead of an HTTP response. No URL, no header: they may hold secrets."""


def reason_of(error: BaseException, timeout_s: float) -> str:
    """One sentence for an error of urllib3, ssl or the system. `timeout_s` is what the request had."""
    chain = _chain(error)
    sentences = (_of_certificate(chain), _of_urllib3(chain, timeout_s), _of_system(chain, timeout_s))
    return next(filter(None, sentences), type(error).__name__)


def _of_certificate(chain: list[BaseException]) -> str:
    # Of ssl.SSLCertVerificationError.
    messages = (getattr(link, "verify_message", "") for link in chain)
    message = next(filter(None, messages), "")
    return f"the certificate of the destination is not good: {message}" if message else ""


def _of_urllib3(chain: list[BaseException], timeout_s: float) -> str:
    import urllib3.exceptions as urllib3  # noqa: PLC0415 - who asks has it imported

    for link in chain:
        if isinstance(link, urllib3.NameResolutionError):
            return "the host name is not known, or no name server answers"
        if isinstance(link, urllib3.ReadTimeoutError):
            return f"no answer within {timeout_s:g} s"
        if type(link) is urllib3.ConnectTimeoutError:
            return f"no connection within {timeout_s:g} s"
    return ""


def _of_system(chain: list[BaseException], timeout_s: float) -> str:
    """The innermost error of the system or of ssl."""
    for link in reversed(chain):
        if isinstance(link, TimeoutError):
            return f"no answer within {timeout_s:g} s"
        if isinstance(link, OSError):
            # Of ssl.SSLError: a word like WRONG_VERSION_NUMBER.
            reason = getattr(link, "reason", None)
            return f"TLS: {reason.replace('_', ' ').lower()}" if isinstance(reason, str) else link.strerror or str(link)
    return ""


def _chain(error: BaseException) -> list[BaseException]:
    """An error and those behind it, the outermost first; urllib3 puts some into the arguments."""
    chain: list[BaseException] = []
    todo = [error]
    while todo:
        link = todo.pop(0)
        if any(link is known for known in chain):
            continue
        chain.append(link)
        context = None if link.__suppress_context__ else link.__context__
        behind = [link.__cause__, context, *(arg for arg in link.args if isinstance(arg, BaseException))]
        todo += [other for other in behind if other is not None]
    return chain
