#!/bin/sh
# Before a removal, not before an upgrade: the server stops. Debian calls it with "remove" or "upgrade",
# RPM with how many versions are left, Alpine with the version.
set -e

case "$1" in
upgrade | failed-upgrade | deconfigure | 1 | 2) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
	systemctl --no-reload disable --now kuji.service || true
elif command -v rc-service >/dev/null; then
	rc-service --ifstarted kuji stop || true
	rc-update --quiet delete kuji || true
fi
