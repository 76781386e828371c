#!/bin/sh
# After an installation or an upgrade: the user of the server, and its directories. It starts nothing and
# restarts nothing, and leaves what is there as it is. It can run any number of times.
set -e

if ! getent group kuji >/dev/null; then
	if command -v groupadd >/dev/null; then groupadd --system kuji; else addgroup -S kuji; fi
fi
if ! getent passwd kuji >/dev/null; then
	if command -v useradd >/dev/null; then
		useradd --system --gid kuji --home-dir /var/lib/kuji --no-create-home --shell /usr/sbin/nologin --comment "Kuji server" kuji
	else
		adduser -S -D -H -G kuji -h /var/lib/kuji -s /sbin/nologin -g "Kuji server" kuji
	fi
fi

# Only root changes settings, and only the server reads them: keys and certificates can stand there.
if [ "$(stat -c %U:%G:%a /etc/kuji)" = root:root:755 ]; then
	chown root:kuji /etc/kuji
	chmod 0750 /etc/kuji
fi
if [ ! -e /var/lib/kuji ]; then
	mkdir -m 0700 /var/lib/kuji
	chown kuji:kuji /var/lib/kuji
fi

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	if systemctl --quiet is-active kuji.service; then
		echo "kuji: the server still runs the version before; systemctl restart kuji changes to this one"
	fi
fi
