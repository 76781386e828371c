#!/bin/sh
# Builds the packages of the clients into a directory: clients/package.sh DIST [DIR]. DIR is what
# clients/install.sh has made; without it, it is made for this. The same sources give the same bytes.
set -eu
source=
trap 'rm -rf "$source"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && dist=$(cd "$1" && pwd)
rm -f "$dist"/kuji-*.whl "$dist"/kuji-*.tar.gz "$dist"/kuji-client*
dir=${2:-}
if [ -z "$dir" ]; then
	dir=$(mktemp -d)
	trap 'rm -rf "$dir" "$source"' EXIT
	"$here/install.sh" "$dir"
fi
dir=$(cd "$dir" && pwd)
# Of the last commit, so that two builds of it have the same times in them.
SOURCE_DATE_EPOCH=$(git -C "$here" log -1 --format=%ct)
export SOURCE_DATE_EPOCH
if [ -d "$dir/python" ]; then
	source=$(mktemp -d)
	(cd "$here/python" && tar cf - pyproject.toml README.md src tests) | tar xf - -C "$source"
	cp "$here/../LICENSE" "$source/"
	"$dir/python/bin/python" -m build --no-isolation --outdir "$dist" "$source" >/dev/null
fi
if [ -d "$dir/typescript" ]; then
	(cd "$dir/typescript" && npm pack --silent --pack-destination "$dist" >/dev/null)
fi
if [ -d "$dir/java" ]; then
	cp "$dir"/java-source/clients/java/target/kuji-client-*[0-9].jar \
		"$dir"/java-source/clients/java/target/kuji-client-*-sources.jar "$dist/"
	cp "$dir"/java-source/clients/java/pom.xml "$dist/kuji-client.pom"
fi
for language in python typescript java; do
	[ -d "$dir/$language" ] || echo "left out: $language" >&2
done
cd "$dist"
for file in kuji-*.whl kuji-*.tar.gz kuji-client-*.tgz kuji-client-*.jar; do
	if [ -f "$file" ]; then sha256sum "$file"; fi
done | tee SHA256SUMS
