#!/bin/sh
# Installs the clients that TestRedisClients runs into a directory: install.sh DIR. It takes them from
# the registries of npm, PyPI and Maven, and leaves out what has no installer here.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && cd "$1"
if command -v npm >/dev/null; then
	npm install --silent --no-audit --no-fund --prefix node ioredis5@npm:ioredis@5 ioredis6@npm:ioredis@6 redis5@npm:redis@5 redis6@npm:redis@6
fi
if command -v pip >/dev/null; then
	for version in 5.2.1 7.4.1 8.1.0; do
		pip install -q --disable-pip-version-check --root-user-action=ignore --target "py/$version" "redis==$version"
	done
fi
if command -v mvn >/dev/null && command -v java >/dev/null; then
	mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$PWD/java"
fi
