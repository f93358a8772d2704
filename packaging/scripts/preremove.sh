#!/bin/sh
set -e
# deb: "remove" or "upgrade ..."; rpm: the number of versions that stay.
if [ "$1" = remove ] || [ "$1" = 0 ]; then
    if [ -d /run/systemd/system ]; then
        systemctl disable --now dynolog.service dynolog-user.service || true
    fi
fi
# Bytecode that postinstall made is in no file list. An upgrade by rpm comes here after the new version has made its own.
[ "$1" = 1 ] && exit 0
find /usr/lib/dynolog/site -name '*.pyc' -delete 2>/dev/null || true
find /usr/lib/dynolog/site -name __pycache__ -empty -delete 2>/dev/null || true
