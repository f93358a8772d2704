"""`python -m dynolog [COMMAND] ...`."""

import sys

from dynolog.commands import main

if __name__ == "__main__":
    sys.exit(main())
