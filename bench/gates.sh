#!/usr/bin/env bash
# Measures the speed gates: this tree against an older commit, on this machine, in turns.
set -euo pipefail
# The C locale: numbers have points, and sort knows them.
export LC_ALL=C

usage() {
  cat <<'TEXT'
usage: bench/gates.sh [-b COMMIT] [-n ROUNDS] [-d DIRECTORY] [-k FILE] [GROUPS...]

Builds the benchmarks and the kuji binary of COMMIT (default b98385f) and of this tree, changes
that are not committed included. Runs them in turns (old, new, old, new ...), ROUNDS times each
(default 5). Prints the medians with what each gate allows and what it aims at. "of best" compares
the smallest values instead. The status is 1 if a gate is missed; a missed aim is only marked.

Groups of rows (default: all), with the minutes they take:
  submit     2.5  draws with Submit: hot, from two goroutines, wide, in a window
  grants     1    grants of 1, 10 and 25 items
  groups     1    an atomic group, and the same as single draws
  batches    1    durable draws, 1000 in a call, hot and wide
  catalogs   1    durable draws from five catalogs, 1000 in a call, with request ids
  counters   1    draws that move three counters, and none; draws among quests; draws while a
                  hundred thousand are held, and none. This tree only
  bytes      0.5  bytes of log that a draw without a request id takes
  recovery   1    opening a realm whose log has a million events, hot and wide
  peers      3    reads and writes of a million players, and the same of an xsync map
  served     1.5  kuji bench --shape stream,anonymous
  memory     7    ten million players: heap, and processor time of one collection (8 GB)

One catalog alone: catalogs/banner.

  -d  where logs are written; default is the system's directory for temporary files. Its disk is
      measured with them. On a tmpfs there is no disk to wait for.
  -k  keep the raw results in this file

A single round on a shared machine says little, and ns/draw on a busy one says little at all.
cpu-ns/draw does not count waiting for the disk or for processors that others use; p10-ns/draw is
of the quickest tenth of the calls. Go by these then.
TEXT
}

# The gates: row, unit, kind, gate and aim, under the name of their group. "-": there is none.
# Kinds: old: new over old. actor, xsync: new over the same work of that store, run by run. none: new
# over the row "none" of the same benchmark, run by run.
# most: new, whatever old is; these limits are what d61c231 and its successors need, rounded up.
gates() {
  cat <<'TEXT'
submit
DrawHot/store=kuji/log=buffered                ns/op           actor  0.6    -
DrawHot/store=kuji/log=buffered                ns/op           old    -      2.0
DrawParallel/store=kuji/goroutines=2           ns/op           actor  0.6    -
DrawParallel/store=kuji/goroutines=2           ns/op           old    -      2.0
DrawWide/store=kuji/log=buffered               ns/op           old    2.4    1.6
DrawWindow/store=kuji/ahead=64                 ns/op           old    2.5    1.6
DrawWindow/store=kuji/ahead=1024               ns/op           old    2.5    1.6
DrawHot/store=kuji/log=buffered                allocs/draw     most   0.01   -
DrawParallel/store=kuji/goroutines=2           allocs/draw     most   0.01   -
grants
Grant/items=1/together                         ns/op           old    3.0    2.0
Grant/items=10/together                        ns/op           old    2.5    1.6
Grant/items=25/together                        ns/op           old    2.5    1.6
groups
Atomic/players=5/draws=25/form=group           ns/op           old    1.6    1.2
Atomic/players=5/draws=25/form=single          ns/op           old    3.0    2.0
batches
DoAll/hot/store=kuji/callers=1                 ns/op           old    1.6    1.3
DoAll/wide/store=kuji/callers=1                ns/op           old    1.25   1.1
catalogs
Catalogs/plain                                 ns/draw         old    1.35   1.2
Catalogs/limits                                ns/draw         old    1.25   1.05
Catalogs/price                                 ns/draw         old    1.25   1.0
Catalogs/raffle                                ns/draw         old    1.2    1.0
Catalogs/banner                                ns/draw         old    1.1    0.9
Catalogs/plain                                 allocs/draw     most   0.02   -
Catalogs/limits                                allocs/draw     most   0.02   -
Catalogs/price                                 allocs/draw     most   0.02   -
Catalogs/raffle                                allocs/draw     most   0.02   -
Catalogs/banner                                allocs/draw     most   0.66   -
Catalogs/plain                                 log-bytes/draw  most   28.8   -
Catalogs/limits                                log-bytes/draw  most   40.8   -
Catalogs/price                                 log-bytes/draw  most   31.8   -
Catalogs/raffle                                log-bytes/draw  most   31.8   -
Catalogs/banner                                log-bytes/draw  most   35.8   -
counters
Counters/three                                 ns/draw         none   1.25   -
Holds/open                                     ns/draw         none   1.1    -
Catalogs/quests                                allocs/draw     most   0.2    -
Catalogs/quests                                log-bytes/draw  most   40.8   -
bytes
EventBytes/plain                               log-bytes/draw  most   11.8   -
EventBytes/banner                              log-bytes/draw  most   18.8   -
recovery
Recovery/hot/events=1000000/store=kuji         ns/op           old    1.6    1.3
Recovery/wide/events=1000000/store=kuji        ns/op           old    1.5    1.2
peers
State/keys=uniform/writes=30/store=kuji-stale  ns/op           xsync  1.6    1.2
State/keys=skewed/writes=0/store=kuji-stale    ns/op           xsync  1.0    0.7
State/keys=uniform/writes=0/store=kuji-stale   ns/op           xsync  1.0    0.7
State/keys=skewed/writes=0/store=kuji          ns/op           xsync  1.0    0.7
State/keys=uniform/writes=0/store=kuji         ns/op           xsync  1.0    0.7
served
served/stream                                  ns/draw         old    1.2    -
served/anonymous                               ns/draw         old    1.2    -
memory
Restore/players=10000000/store=kuji            resident-MB     old    1.1    -
Collect/players=10000000/store=kuji            cpu-ms/gc       old    1.1    -
TEXT
}

# measure GROUP: runs its benchmarks. Where what is remembered grows with the number of operations,
# both sides do the same number.
measure() {
  case $1 in
  submit)
    # On two processors everywhere, as the name of a row has their number.
    turns bench test \
      '^BenchmarkDraw(Hot|Parallel|Window)$/^store=(kuji|actor)$/^(log=(buffered|off)|goroutines=2|ahead=(64|1024))$' \
      -test.cpu 2
    turns bench test '^BenchmarkDrawWide$/^store=kuji$/^log=buffered$' -test.benchtime 2000000x
    ;;
  grants) turns bench test '^BenchmarkGrant$/^items=.*$/^together$' ;;
  groups) turns bench test '^BenchmarkAtomic$' ;;
  batches) turns bench test '^BenchmarkDoAll$/^(hot|wide)$/^store=kuji$/^callers=1$' -test.benchtime 2000000x ;;
  catalogs) for c in plain limits price raffle banner; do measure "catalogs/$c"; done ;;
  catalogs/*) turns bench test "^BenchmarkCatalogs\$/^${1#*/}\$" -test.benchtime 1000x ;;
  counters) alone bench test '^Benchmark(Counters|Catalogs|Holds)$/^(none|three|quests|open)$' -test.benchtime 500x ;;
  bytes) turns bench test '^BenchmarkEventBytes$/^(plain|banner)$' -test.benchtime 100x ;;
  recovery) turns bench test '^BenchmarkRecovery$/^(hot|wide)$/^events=1000000$/^store=kuji$' -test.benchtime 5x ;;
  peers) turns bench peers '^BenchmarkState$/^keys=(skewed|uniform)$/^writes=(0|30)$' ;;
  served) for shape in stream anonymous; do turns served "$shape"; done ;;
  memory)
    turns bench test '^BenchmarkRestore$/^players=.*$/^store=kuji$' -large -test.benchtime 1x
    turns bench test '^BenchmarkCollect$/^players=.*$/^store=kuji$' -large -test.benchtime 5x
    ;;
  esac
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
if [[ $# -gt 0 ]]; then groups="$*"; else groups='submit grants groups batches catalogs counters bytes recovery peers served memory'; fi
for group in $groups; do
  case $group in
  submit | grants | groups | batches | catalogs | counters | bytes | recovery | peers | served | memory) ;;
  catalogs/plain | catalogs/limits | catalogs/price | catalogs/raffle | catalogs/banner) ;;
  *) echo "bench/gates.sh: there is no group $group" >&2 && usage >&2 && exit 2 ;;
  esac
done

cd "$(dirname "${BASH_SOURCE[0]}")/.."
tmp=$(mktemp -d "$where/kuji-gates-XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM # and so by EXIT
out=$tmp/results
: >"$out"
say() { printf '%s\n' "$*" >&2; }

# build NAME TREE: the binaries that the groups need, as $tmp/NAME.test, $tmp/NAME.peers and
# $tmp/NAME.kuji. Those of tests run in $tmp/NAME.
build() {
  say "build $1"
  mkdir -p "$tmp/$1"
  (cd "$2" && go test -c -o "$tmp/$1.test" ./bench)
  [[ " $groups " != *' peers '* ]] || (cd "$2/bench/peers" && go test -c -o "$tmp/$1.peers" .)
  [[ " $groups " != *' served '* ]] || (cd "$2" && go build -o "$tmp/$1.kuji" ./cmd/kuji)
}
# A plain copy of the commit's files does what a git worktree would, and leaves nothing in .git. It
# gets this tree's benchmarks, for it may have others or none. (Of the peers and the memory it has.)
mkdir "$tmp/tree" "$tmp/logs"
git archive "$base" | tar -x -C "$tmp/tree"
cp bench/{realm,draw,grant,batch,catalogs,recovery}_test.go bench/cpu_*_test.go "$tmp/tree/bench/"
build old "$tmp/tree"
build new .
rm -rf "$tmp/tree"

# bench SIDE BINARY REGEXP FLAGS...: appends "SIDE ROW UNIT VALUE" for every metric of every
# benchmark.
bench() {
  local side=$1 binary=$2 regexp=$3
  shift 3
  if ! (cd "$tmp/$side" && "../$side.$binary" -test.run '^$' -test.bench "$regexp" -test.timeout 0 -dir "$tmp/logs" "$@") >"$tmp/run" 2>&1; then
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

# alone COMMAND ARGUMENTS...: runs COMMAND new ARGUMENTS, for what the older commit may not have.
alone() {
  local command=$1
  shift
  for ((round = 1; round <= rounds; round++)); do
    say "$group: round $round of $rounds, new"
    "$command" new "$@"
  done
}

# turns COMMAND ARGUMENTS...: runs COMMAND old ARGUMENTS and COMMAND new ARGUMENTS in turns.
turns() {
  local command=$1
  shift
  for ((round = 1; round <= rounds; round++)); do
    for side in old new; do
      say "$group: round $round of $rounds, $side"
      "$command" "$side" "$@"
    done
  done
}

for group in $groups; do measure "$group"; done
[[ -z $keep ]] || cp "$out" "$keep"

# The table: the gates of the groups in their order, then other units of the same benchmarks.
gates >"$tmp/gates"
awk -v base="$base" -v gates="$tmp/gates" -v groups=" $groups " \
  -v other='(cpu-ns|p10-ns|log-bytes)/draw$|wal_bytes|store=(actor|xsync).* ns/op$' '
  function median(list, n, i, j, x, h) { # sorts the n numbers of list
    if (!n) return "none"
    for (i = 2; i <= n; i++) {
      x = list[i]
      for (j = i - 1; j > 0 && list[j] > x; j--) list[j + 1] = list[j]
      list[j + 1] = x
    }
    h = int((n + 1) / 2)
    return n % 2 ? list[h] : (list[h] + list[h + 1]) / 2
  }
  function middle(side, k, list, i) {
    for (i = 1; i <= count[side, k]; i++) list[i] = value[side, k, i]
    return median(list, count[side, k])
  }
  function least(side, k, x, i) {
    x = count[side, k] ? value[side, k, 1] : "none"
    for (i = 2; i <= count[side, k]; i++) if (value[side, k, i] < x) x = value[side, k, i]
    return x
  }
  function quotient(a, b) { return a == "none" || b == "none" || b <= 0 ? "none" : a / b }
  # over compares this tree with k2 of a side. Stores of one run are compared round by round, so
  # that a slow round is slow for both.
  function over(k, side, k2, list, i) {
    if (side == "old") return quotient(middle("new", k), middle("old", k2))
    for (i = 1; i <= count["new", k]; i++) {
      list[i] = quotient(value["new", k, i], value["new", k2, i])
      if (list[i] == "none") return "none"
    }
    return median(list, count["new", k])
  }
  function show(v, form) { return v == "none" ? "-" : sprintf(form, v) }
  function limit(number, kind) { return number == "-" || kind == "most" ? number : number " x " kind }
  function beyond(got, number) { return number != "-" && (got == "none" || got + 0 > number + 0) }
  function line(k, side, k2, gate, aim, says, f) {
    split(k, f, " ")
    printf format " %s\n", f[1], f[2], show(middle("old", k), "%.5g"), show(middle("new", k), "%.5g"),
      show(over(k, side, k2), "%.3f"), show(quotient(least("new", k), least(side, k2)), "%.3f"), gate, aim, says
  }
  {
    k = $2 " " $3
    if (!(k in known)) { known[k]; keys[++rows] = k }
    value[$1, k, ++count[$1, k]] = $4 + 0
  }
  END {
    format = "%-46s %-14s %11s %11s %8s %8s  %-11s %-11s"
    printf format "\n", "row", "unit", base, "new", "ratio", "of best", "gate", "aim"
    while ((getline text < gates) > 0) {
      if (split(text, f, " ") == 1) { group = f[1]; continue }
      k = f[1] " " f[2]; kind = f[3]
      # A row that its group should have and has not is missed, too.
      if (!(k in known) && !index(groups, " " group " ")) continue
      gated[k]
      side = kind == "old" ? "old" : "new"
      k2 = k
      if (kind == "actor") k2 = "DrawHot/store=actor/log=off ns/op"
      if (kind == "none") { k2 = f[1]; sub(/\/.*/, "/none " f[2], k2) }
      if (kind == "xsync") sub(/store=[^ ]*/, "store=xsync", k2)
      if (kind == "most") k2 = "none"
      got = kind == "most" ? middle("new", k) : over(k, side, k2)
      missed = beyond(got, f[4])
      bad += missed
      says = missed ? "MISSED" : f[4] == "-" ? "-" : "ok"
      if (!missed && beyond(got, f[5])) says = says " (aim missed)"
      line(k, side, k2, limit(f[4], kind), limit(f[5], kind), says)
    }
    for (i = 1; i <= rows; i++) {
      k = keys[i]
      if (!(k in gated) && k ~ other) line(k, "old", k, "", "", "")
    }
    exit bad > 0
  }' "$out"
