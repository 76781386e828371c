#!/usr/bin/env bash
# Measures the speed gates: this tree against an older commit, on this machine, in turns.
set -euo pipefail
# The C locale: numbers have points, and sort knows them.
export LC_ALL=C

usage() {
  cat <<'TEXT'
usage: bench/gates.sh [-b COMMIT] [-n ROUNDS] [-d DIRECTORY] [-k FILE] [ROWS...]

Builds the benchmarks and the kuji binary of COMMIT (default b98385f) and of this tree, changes
that are not committed included. Runs them in turns (old, new, old, new ...), ROUNDS times each
(default 5). Prints the medians and new over old with what each gate allows; the gates go by
these. "of best" is the same of the smallest values. The status is 1 if a gate is missed.

Rows (default: all):
  catalogs   durable draws from five catalogs, 1000 in a call, with request ids  (2 minutes)
  bytes      bytes of log that a draw without a request id takes                 (1 minute)
  served     kuji bench --shape stream,anonymous                                 (3 minutes)
  recovery   opening a realm whose log has a million wide events                 (2 minutes)
  memory     ten million players: heap, and processor time of one collection     (long; 8 GB)

One catalog alone: catalogs/banner.

  -d  where logs are written; default is the system's directory for temporary files. Its disk is
      measured with them. On a tmpfs there is no disk to wait for.
  -k  keep the raw results in this file

A single round on a shared machine says little, and ns/draw on a busy one says little at all.
cpu-ns/draw does not count waiting for the disk or for processors that others use; p10-ns/draw is
of the quickest tenth of the calls. Go by these then.
TEXT
}

base=b98385f rounds=5 where=${TMPDIR:-/tmp} keep=
while getopts b:n:d:k:h flag; do
  case $flag in
  b) base=$OPTARG ;;
  n) rounds=$OPTARG ;;
  d) where=$(cd "$OPTARG" && pwd) ;;
  k) keep=$(realpath "$OPTARG") ;;
  h) usage && exit ;;
  *) usage >&2 && exit 2 ;;
  esac
done
shift $((OPTIND - 1))
rows=("$@")
[[ ${#rows[@]} -gt 0 ]] || rows=(catalogs bytes served recovery memory)
for row in "${rows[@]}"; do
  case $row in
  catalogs | catalogs/plain | catalogs/limits | catalogs/price | catalogs/raffle | catalogs/banner) ;;
  bytes | served | recovery | memory) ;;
  *) echo "bench/gates.sh: there is no row $row" >&2 && usage >&2 && exit 2 ;;
  esac
done

cd "$(dirname "${BASH_SOURCE[0]}")/.."
tmp=$(mktemp -d "$where/kuji-gates-XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM # and so by EXIT
out=$tmp/results
: >"$out"
say() { printf '%s\n' "$*" >&2; }

# build NAME TREE: binaries of the tree as $tmp/NAME.test and $tmp/NAME.kuji. The test binary runs
# in $tmp/NAME.
build() {
  say "build $1"
  mkdir -p "$tmp/$1"
  (cd "$2" && go test -c -o "$tmp/$1.test" ./bench && go build -o "$tmp/$1.kuji" ./cmd/kuji)
}
# A plain copy of the commit's files does what a git worktree would, and leaves nothing in .git.
mkdir "$tmp/tree" "$tmp/logs"
git archive "$base" | tar -x -C "$tmp/tree"
# The benchmarks that the commit may not have, or may have in another form.
cp bench/catalogs_test.go bench/cpu_*_test.go "$tmp/tree/bench/"
if ! grep -q 'BenchmarkEventBytes' "$tmp/tree/bench/bench_test.go"; then
  say "at $base: catalogs_test.go is this tree's"
fi
build old "$tmp/tree"
build new .
rm -rf "$tmp/tree"

# bench SIDE REGEXP FLAGS...: appends "SIDE ROW UNIT VALUE" for every metric of every benchmark.
bench() {
  local side=$1 regexp=$2
  shift 2
  if ! (cd "$tmp/$side" && "../$side.test" -test.run '^$' -test.bench "$regexp" -test.timeout 0 -dir "$tmp/logs" "$@") >"$tmp/run" 2>&1; then
    cat "$tmp/run" >&2
    exit 1
  fi
  awk -v side="$side" '/^Benchmark/ {
    name = $1
    sub(/^Benchmark/, "", name)
    sub(/-[0-9]+$/, "", name)
    for (i = 3; i < NF; i += 2) print side, name, $(i + 1), $i
    found++
  }
  END { if (!found) { print "no benchmark ran" > "/dev/stderr"; exit 1 } }' "$tmp/run" >>"$out"
}

# served SIDE SHAPE
served() {
  "$tmp/$1.kuji" bench --json --shape "$2" --dir "$tmp/logs" 2>"$tmp/run" >"$tmp/json" || { cat "$tmp/run" "$tmp/json" >&2 && exit 1; }
  # The keys are all of one result; the same on one line or on many.
  tr ',{' '\n\n' <"$tmp/json" | awk -v side="$1" -v row="served/$2" -F': *' '
    { gsub(/[" }\]]/, "", $1); gsub(/[ }\]]/, "", $2) }
    $1 == "draws_per_second" { printf "%s %s ns/draw %.1f\n", side, row, 1e9 / $2; found = 1 }
    $1 == "log_bytes_per_draw" { print side, row, "log-bytes/draw", $2 }
    END { if (!found) { print "kuji bench reports no draws_per_second" > "/dev/stderr"; exit 1 } }' >>"$out"
}

# turns COMMAND ARGUMENTS...: runs COMMAND old ARGUMENTS and COMMAND new ARGUMENTS in turns.
turns() {
  local command=$1
  shift
  for ((round = 1; round <= rounds; round++)); do
    for side in old new; do
      say "$command $1: round $round of $rounds, $side"
      "$command" "$side" "$@"
    done
  done
}

for row in "${rows[@]}"; do
  case $row in
  # The same number of calls on both sides: what is remembered grows with it.
  catalogs) for c in plain limits price raffle banner; do turns bench "^BenchmarkCatalogs\$/^$c\$" -test.benchtime 1000x; done ;;
  catalogs/*) turns bench "^BenchmarkCatalogs\$/^${row#*/}\$" -test.benchtime 1000x ;;
  bytes) turns bench '^BenchmarkEventBytes$/^(plain|banner)$' -test.benchtime 100x ;;
  served) for shape in stream anonymous; do turns served "$shape"; done ;;
  recovery) turns bench '^BenchmarkRecovery$/^wide$/^events=1000000$/^store=kuji$' -test.benchtime 3x ;;
  memory)
    turns bench '^BenchmarkRestore$/^players=.*$/^store=kuji$' -large -test.benchtime 1x
    turns bench '^BenchmarkCollect$/^players=.*$/^store=kuji$' -large -test.benchtime 5x
    ;;
  esac
done
[[ -z $keep ]] || cp "$out" "$keep"

# The gates: row, unit, kind and limit. ratio: new over old. most: new, whatever old is. same: new
# may be old and a hundredth, as garbage of the background is counted too.
cat >"$tmp/gates" <<'TEXT'
Catalogs/plain ns/draw ratio 1.3
Catalogs/limits ns/draw ratio 1.1
Catalogs/price ns/draw ratio 1.0
Catalogs/raffle ns/draw ratio 1.0
Catalogs/banner ns/draw ratio 0.9
Catalogs/plain allocs/draw same 0.01
Catalogs/limits allocs/draw same 0.01
Catalogs/price allocs/draw same 0.01
Catalogs/raffle allocs/draw same 0.01
Catalogs/banner allocs/draw same 0.01
EventBytes/plain log-bytes/draw most 16
EventBytes/banner log-bytes/draw most 32
served/stream ns/draw ratio 1.2
served/anonymous ns/draw ratio 1.2
Recovery/wide/events=1000000/store=kuji ns/op ratio 1.5
Restore/players=10000000/store=kuji resident-MB ratio 1.1
Collect/players=10000000/store=kuji cpu-ms/gc most 20
TEXT

# Rows in the order in which they ran; values sorted within, so that the middle one is the median.
awk '!seen[$2, $3]++ { order[$2, $3] = ++n } { print order[$2, $3], $0 }' "$out" | sort -k1,1n -k2,2 -k5,5g |
  awk -v base="$base" -v gates="$tmp/gates" '
  function median(side, k, n, h) {
    n = count[side, k]
    if (!n) return "none"
    h = int((n + 1) / 2)
    return n % 2 ? value[side, k, h] : (value[side, k, h] + value[side, k, h + 1]) / 2
  }
  function best(k) { # the smallest values next to each other: what other work on the machine adds is least in them
    return count["old", k] && count["new", k] && value["old", k, 1] > 0 ? sprintf("%.3f", value["new", k, 1] / value["old", k, 1]) : "-"
  }
  BEGIN { while ((getline line < gates) > 0) { split(line, f, " "); kind[f[1] " " f[2]] = f[3]; limit[f[1] " " f[2]] = f[4] } }
  {
    k = $3 " " $4
    if (!(k in known)) { known[k]; keys[++rows] = k }
    value[$2, k, ++count[$2, k]] = $5
  }
  END {
    printf "%-40s %-14s %12s %12s %8s %8s  %s\n", "row", "unit", base, "new", "new/old", "of best", "at most"
    for (r = 1; r <= rows; r++) {
      k = keys[r]
      split(k, f, " ")
      gate = k in kind ? kind[k] : ""
      if (!gate && f[2] !~ /^(cpu-ns\/draw|p10-ns\/draw|log-bytes\/draw)$/) continue
      old = median("old", k); new = median("new", k)
      ratio = old != "none" && new != "none" && old > 0 ? new / old : 0
      says = ""; verdict = ""
      if (gate == "ratio") { says = limit[k] " x"; missed = !ratio || ratio > limit[k] }
      if (gate == "most") { says = limit[k]; missed = new == "none" || new > limit[k] }
      if (gate == "same") { says = "as before"; missed = new == "none" || old == "none" || new > old + limit[k] }
      if (gate) { verdict = missed ? " MISSED" : " ok"; bad += missed }
      printf "%-40s %-14s %12.6g %12.6g %8.3f %8s  %s%s\n", f[1], f[2], old, new, ratio, best(k), says, verdict
    }
    exit bad > 0
  }'
