#!/usr/bin/env bash
# Shows the main job on the bundled board, in a folder that is thrown away: no
# account, no key, no network.
set -euo pipefail
cd "$(dirname "$0")/.."

go build -C kicad -o ../.tmp/fiducial ./cmd/fiducial
fiducial=$PWD/.tmp/fiducial

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# step says what comes next, and shows the command that does it.
step() { printf '\n── %s\n' "$*"; }
run() {
	printf '$ %s\n' "${*/#$fiducial/fiducial}"
	"$@"
}

step "the command, built from this tree"
run "$fiducial" version
