#!/bin/sh
# Make (or refresh) the virtual environment $1 with the locked packages of $2 and this checkout, editable.
# Works with any Python >= 3.11 that has pip, also Debian's without python3-venv.
set -eu
venv=$1
lock=$2
python=${PYTHON:-python3}

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "dynolog needs Python 3.11 or newer; $python is $("$python" --version 2>&1). Use: make PYTHON=/path/to/python3.11" >&2
    exit 1
}
if [ ! -x "$venv/bin/python" ]; then
    if ! "$python" -m venv "$venv" >/dev/null 2>&1; then
        rm -rf "$venv"
        "$python" -m venv --without-pip "$venv"
    fi
fi
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    "$python" -m pip --python "$venv/bin/python" install --quiet pip || {
        echo "pip is missing: install python3-pip or python3-venv" >&2
        exit 1
    }
fi
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --editable .
