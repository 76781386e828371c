#!/bin/sh
# Installs what tests of the clients need into a directory: clients/install.sh DIR [LANGUAGE...]. Then
# KUJI_CLIENTS=DIR go test ./clients/conformance plays with them. It takes packages from PyPI, npm and Maven
# Central, as lock files say. A language whose tools are missing, or whose registry does not answer, is left out.
set -u
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && dir=$(cd "$1" && pwd) && shift || exit 1

python() {
	command -v python3 >/dev/null || { echo "no python3"; return 1; }
	python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "python3 is older than 3.10"; return 1; }
	python3 -m venv "$dir/python" &&
		"$dir/python/bin/pip" install -q --disable-pip-version-check --require-hashes -r "$here/python/requirements.txt" &&
		"$dir/python/bin/pip" install -q --disable-pip-version-check --no-deps --no-build-isolation -e "$here/python"
}

typescript() {
	command -v node >/dev/null && command -v npm >/dev/null || { echo "no node or npm"; return 1; }
	mkdir -p "$dir/typescript" &&
		(cd "$here/typescript" && tar cf - --exclude node_modules --exclude build --exclude dist .) | tar xf - -C "$dir/typescript" &&
		cp "$here/../LICENSE" "$dir/typescript/" &&
		cd "$dir/typescript" && npm ci --silent --no-audit --no-fund && npm run --silent build
}

# For the suite in Deno, which plays with the TypeScript client as well. By version, without a lock file.
deno() {
	command -v npm >/dev/null || { echo "no npm"; return 1; }
	mkdir -p "$dir/deno" && cd "$dir/deno" && npm install --silent --no-audit --no-fund deno@2.9.6
}

java() {
	command -v mvn >/dev/null && command -v javac >/dev/null || { echo "no mvn or JDK"; return 1; }
	mkdir -p "$dir/java" "$dir/java-source" &&
		(cd "$here/.." && tar cf - --exclude target clients/java proto LICENSE) | tar xf - -C "$dir/java-source" &&
		mvn -q -B -f "$dir/java-source/clients/java/pom.xml" -DskipTests package dependency:copy-dependencies -DoutputDirectory="$dir/java" &&
		cp "$dir"/java-source/clients/java/target/*.jar "$dir/java/"
}

for language in ${*:-python typescript java}; do
	case $language in
	python | typescript | java | deno) ;;
	*) echo "no client is called $language: expected python, typescript, java or deno" >&2 && exit 2 ;;
	esac
	if (set -e; "$language") >"$dir/$language.log" 2>&1; then
		echo "installed: $language"
	else
		tail -n 3 "$dir/$language.log"
		echo "left out: $language"
		rm -rf "${dir:?}/$language"
	fi
done
