#!/bin/sh
# Whole processes side by side: canaryctl against DuckDB, on a request log that
# is made for it. Prints one table an input, in Markdown, and for each whether
# both printed the same rows.
#
#   bench/rivals.sh [INPUT...]     all inputs without one: jsonl mixed csv parquet zst gz start
#
# CANARYCTL_SHARED  where bench/gen, bench/duckq and bench/compare.py are (../shared)
# BENCH_DIR         where data and programs are kept, 4 GB (a folder of the system's temporary one)
# ROWS, ROUNDS      rows of the log (5000000) and rounds a command (7)
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
shared=${CANARYCTL_SHARED:-$here/../shared}
dir=${BENCH_DIR:-${TMPDIR:-/tmp}/canaryctl-bench}
rows=${ROWS:-5000000} rounds=${ROUNDS:-7}
[ -d "$shared/bench" ] || { echo "no $shared/bench: set CANARYCTL_SHARED" >&2; exit 2; }
mkdir -p "$dir/bin" "$dir/empty"

# build DIR PROGRAM PACKAGE: as it is released. It is copied once, as installing or
# unpacking does: a file as the linker leaves it is slower to start, whatever it is.
build() {
	(cd "$1" && CGO_ENABLED=0 go build -trimpath -o "$dir/bin/$2.linked" "$3")
	cp "$dir/bin/$2.linked" "$dir/bin/$2.new"
	mv "$dir/bin/$2.new" "$dir/bin/$2"
	rm "$dir/bin/$2.linked"
}
build "$here" canaryctl ./cmd/canaryctl
for tool in gen duckq; do
	[ -x "$dir/bin/$tool" ] && continue
	cp -R "$shared/bench/$tool" "$dir/$tool.src"
	chmod -R u+w "$dir/$tool.src"
	(cd "$dir/$tool.src" && go build -o "../bin/$tool" .)
done
cd "$dir"

# make FILE COMMAND: run the command for a file that is not there yet.
make() {
	[ -e "$1" ] || { echo "making $1" >&2; shift; "$@" >&2; }
}
log=log-$rows
plain() {
	make "$log.jsonl" bin/gen -rows "$rows" -seed 42 -jsonl "$log.jsonl" -csv "$log.csv"
}

of_duckdb() {
	echo "SELECT time_bucket(INTERVAL '10 minutes', ts) w, count(*) n, sum(solved::INT), count(solved), sum(violation::INT), sum(transfer::INT), avg(cost_usd), quantile_disc(latency_ms,0.99) FROM $1 GROUP BY 1 ORDER BY 1"
}
typed="format='newline_delimited', columns={ts:'TIMESTAMP',latency_ms:'DOUBLE',cost_usd:'DOUBLE',solved:'BOOLEAN',violation:'BOOLEAN',transfer:'BOOLEAN'}"

# race NAME FILE READER: both read a file into windows of ten minutes.
race() {
	printf '\n%s: %s, %s rows, %s bytes\n\n' "$1" "$2" "$rows" "$(wc -c <"$2" | tr -d ' ')"
	python3 "$shared/bench/compare.py" -n "$rounds" --check "duckdb=bin/duckq \"$(of_duckdb "$3")\"" \
		"canaryctl=bin/canaryctl windows --span 10m --arm all -o csv --columns t,total,solved,judged,violations,transfers,cost_mean,p99_ms $2" 2>&1
}

for input in ${*:-jsonl mixed csv parquet zst gz start}; do
	case $input in
	jsonl) plain; race "JSON lines" "$log.jsonl" "read_json('$log.jsonl', $typed)" ;;
	mixed)
		make "mixed-$rows.jsonl" bin/gen -rows "$rows" -seed 42 -shuffle 0.3 -jsonl "mixed-$rows.jsonl"
		race "JSON lines, the keys of 30 % of them in another order" "mixed-$rows.jsonl" "read_json('mixed-$rows.jsonl', $typed)"
		;;
	csv) plain; race CSV "$log.csv" "read_csv('$log.csv')" ;;
	parquet)
		plain
		make "$log.parquet" bin/duckq "COPY (SELECT * REPLACE (ts::TIMESTAMP AS ts) FROM read_json('$log.jsonl', format='newline_delimited')) TO '$log.parquet' (FORMAT parquet, COMPRESSION zstd)"
		race Parquet "$log.parquet" "read_parquet('$log.parquet')"
		;;
	zst) plain; make "$log.jsonl.zst" zstd -q -3 -k "$log.jsonl"; race "JSON lines, zstd -3" "$log.jsonl.zst" "read_json('$log.jsonl.zst', $typed)" ;;
	gz) plain; make "$log.jsonl.gz" gzip -6 -k "$log.jsonl"; race "JSON lines, gzip -6" "$log.jsonl.gz" "read_json('$log.jsonl.gz', $typed)" ;;
	start)
		printf 'package main\n\nfunc main() {}\n' >empty/main.go
		build "$dir" empty empty/main.go
		printf '\nstart: an empty Go program\n\n'
		python3 "$shared/bench/compare.py" -n 100 "empty=bin/empty" "canaryctl=bin/canaryctl version"
		;;
	*) echo "no input $input" >&2; exit 2 ;;
	esac
done
