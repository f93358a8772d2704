"""A kernel file that this kernel may lack."""

from dynolog.sources.host_files import HostFiles


class OptionalFile:
    """A file that may be missing or refuse to be read; after a failure it is left alone for a while.

    `error` is why the last try failed, None when it worked.
    """

    # At a reading a second, a file that failed is tried again once a minute.
    SKIPPED_AFTER_FAILURE = 59

    def __init__(self, host: HostFiles, relative: str) -> None:
        self._file = host.file(relative)
        self._skip = 0
        self.path = "/" + relative
        self.error: OSError | None = None

    def retry(self) -> None:
        """Try again at the next read: for a source that has nothing else, which the scheduler already asks seldom."""
        self._skip = 0

    def read(self) -> bytes | None:
        """The content, or None."""
        if self._skip:
            self._skip -= 1
            return None
        try:
            data = self._file.read()
        except OSError as error:
            self.error = error
            self._skip = self.SKIPPED_AFTER_FAILURE
            return None
        self.error = None
        return data
