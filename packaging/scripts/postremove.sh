#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
# deb only: rpm has no purge, and leaves logs to the operator.
if [ "$1" = purge ]; then
    rm -rf /var/log/dynolog /var/lib/dynolog
fi
