#!/usr/bin/env bash
# Rewrites the golden files of every test package that has some: datadriven's
# scripts by its flag -rewrite, our own by a flag -update that the test defines.
set -euo pipefail
cd "$(dirname "$0")/.."

failed=0

# rewrite tests, with a flag, each package that has a test file with this text.
rewrite() {
	local dir
	while read -r dir; do
		(cd "$dir" && go test . "$2") || failed=1
	done < <(git grep --untracked -lF -e "$1" -- '*_test.go' | xargs -r dirname | sort -u)
}

rewrite cockroachdb/datadriven -rewrite
rewrite 'flag.Bool("update"' -update

git --no-pager diff --stat
exit $failed
