#!/bin/sh
set -e
# deb: "configure OLD_VERSION"; rpm: the number of versions that will be installed.
if [ "$1" != configure ] && [ "$1" != 1 ] && [ "$1" != 2 ]; then
    exit 0
fi

# Bytecode for the Python that will run it: the service cannot write any itself, and would compile at every start.
for python in /usr/bin/python3 /usr/bin/python3.1[1-4] /usr/local/bin/python3 /usr/local/bin/python3.1[1-4]; do
    [ -x "$python" ] || continue
    case $(readlink -f -- "$python") in
    */python3.1[1-4])
        "$python" -I -m compileall -q --invalidation-mode unchecked-hash /usr/lib/dynolog/site || true
        break
        ;;
    esac
done

# The user of dynolog-user.service.
if command -v systemd-sysusers >/dev/null; then
    systemd-sysusers dynolog.conf || true
elif ! getent passwd dynolog >/dev/null; then
    useradd --system --home-dir /var/lib/dynolog --shell /usr/sbin/nologin dynolog || true
fi
if [ -w /proc/sys/net/unix/max_dgram_qlen ] && command -v sysctl >/dev/null; then
    sysctl -q -p /usr/lib/sysctl.d/60-dynolog.conf || true
fi

if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
    if [ -n "$2" ] || [ "$1" = 2 ]; then
        # An upgrade: whichever of the two runs goes on with the new version.
        systemctl try-restart dynolog.service dynolog-user.service || true
    else
        echo "dynolog: look at /etc/dynolog.gflags, then: systemctl enable --now dynolog" \
            "(or dynolog-user, which needs no root and sees less)"
    fi
fi
