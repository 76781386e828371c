#!/bin/sh
# After a removal. The data in /var/lib/kuji, what was added to /etc/kuji, and the user stay: nobody else
# has what players won.
set -e

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
case "$1" in
purge | remove | 0)
	if [ -d /var/lib/kuji ] && [ -n "$(ls -A /var/lib/kuji)" ]; then
		echo "kuji: the data stays in /var/lib/kuji; remove it yourself if nobody needs it"
	fi
	;;
esac
