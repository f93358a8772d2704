#!/bin/sh
# Make (or refresh) the virtual environment $1 with a CPU build of PyTorch, for the demo and the integration tests.
# TORCH names another requirement, for example TORCH='torch==2.9.1 --index-url URL'.
set -eu
venv=$1
python=${PYTHON:-python3}
if [ -x "$venv/bin/python" ] && "$venv/bin/python" -c 'import torch, numpy' 2>/dev/null; then
    exit 0
fi
if ! "$python" -m venv "$venv" >/dev/null 2>&1; then
    rm -rf "$venv"
    "$python" -m venv --without-pip "$venv"
    "$python" -m pip --python "$venv/bin/python" install --quiet pip
fi
echo "installing a CPU build of PyTorch into $venv (about 200 MB to fetch, once)" >&2
# shellcheck disable=SC2086  # TORCH may hold options
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check ${TORCH:-torch==2.13.0} numpy
"$venv/bin/python" -c 'import torch; print("PyTorch", torch.__version__)' >&2
