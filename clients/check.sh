#!/bin/sh
# Checks the clients that clients/install.sh has put into a directory: clients/check.sh DIR. Types, their own
# tests, generated code, and the conformance suite.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=$(cd "$1" && pwd)
if [ -d "$dir/python" ]; then
	(cd "$here/python" && "$dir/python/bin/mypy" --cache-dir "$dir/mypy" && "$dir/python/bin/pytest" -q -p no:cacheprovider)
fi
if [ -d "$dir/typescript" ]; then
	(cd "$dir/typescript" && node --test --test-reporter=dot build/test/client.test.js)
fi
if [ -d "$dir/java" ]; then
	mvn -q -B -f "$dir/java-source/clients/java/pom.xml" surefire:test
fi
cd "$here/.."
KUJI_CLIENTS=$dir go test -count=1 -timeout 5m -parallel 8 -v ./clients/conformance | grep -E '^(--- |ok|FAIL|panic)|^ {4}--- | left out|_test.go:'
