#!/bin/sh
# Writes the generated code of the clients again, after a change of proto: clients/generate.sh [DIR]. DIR is what
# clients/install.sh has made, or nothing: then it installs for itself. Java generates at each build.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=${1:-}
if [ -z "$dir" ]; then
	dir=$(mktemp -d)
	trap 'rm -rf "$dir"' EXIT
	"$here/install.sh" "$dir" python typescript
fi
dir=$(cd "$dir" && pwd)
out=${KUJI_GENERATED:-$here}
if [ -d "$dir/python" ]; then
	"$dir/python/bin/python" "$here/python/generate.py" "$out/python/src"
fi
if [ -d "$dir/typescript" ]; then
	cd "$here/../proto"
	mkdir -p "$out/typescript/src/gen"
	PATH="$dir/typescript/node_modules/.bin:$PATH" go tool -modfile=../tools/go.mod buf generate --template "$here/typescript/buf.gen.yaml" -o "$out/typescript"
fi
