#!/usr/bin/env bash
# Runs every benchmark, once the start-up time of the command, and keeps the
# benchmarks' lines in .tmp/bench.txt.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p .tmp
go test -run '^$' -bench . -benchmem work | tee .tmp/bench.txt
if [[ -f bench/go.mod ]]; then
	(cd bench && GOWORK=off go test -run '^$' -bench . -benchmem ./...) | tee -a .tmp/bench.txt
	(cd bench && GOWORK=off go run ./cmd/rounds) # the table of the README
fi

# started prints the milliseconds that a command takes, the median of 21 runs.
started() {
	local i from to
	for ((i = 0; i < 21; i++)); do
		from=${EPOCHREALTIME/[.,]/}
		"$@" >/dev/null
		to=${EPOCHREALTIME/[.,]/}
		echo $((to - from))
	done | sort -n | awk 'NR == 11 { printf "%.1f", $1 / 1000 }'
}

go build -C kicad -o ../.tmp/fiducial ./cmd/fiducial
echo "start-up: fiducial version takes $(started .tmp/fiducial version) ms (median of 21)"
