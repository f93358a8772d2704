#!/bin/sh
# Make the virtual environment $1 with the public HolisticTraceAnalysis, which `make test-analysis` and `make bench` compare with.
set -eu
venv=$1
python=${PYTHON:-python3}
if [ -x "$venv/bin/python" ] && "$venv/bin/python" -c 'import hta' 2>/dev/null; then
    exit 0
fi
if ! "$python" -m venv "$venv" >/dev/null 2>&1; then
    rm -rf "$venv"
    "$python" -m venv --without-pip "$venv"
    "$python" -m pip --python "$venv/bin/python" install --quiet pip
fi
echo "installing HolisticTraceAnalysis into $venv (500 MB, once)" >&2
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check HolisticTraceAnalysis==0.5.0
