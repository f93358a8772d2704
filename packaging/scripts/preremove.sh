#!/bin/sh
set -e
# deb: "remove" or "upgrade ..."; rpm: the number of versions that stay.
if [ "$1" = remove ] || [ "$1" = 0 ]; then
    if [ -d /run/systemd/system ]; then
        systemctl disable --now dynolog.service dynolog-user.service || true
    fi
fi
# Bytecode that postinstall made is in no file list.
find /usr/lib/dynolog/site -name '*.pyc' -delete 2>/dev/null || true
find /usr/lib/dynolog/site -name __pycache__ -empty -delete 2>/dev/null || true
