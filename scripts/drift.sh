#!/usr/bin/env bash
# Fails when make generate changes a file: one that git knows or a new one that
# it does not ignore. Changes that stood before are left out of it, so a tree
# with uncommitted work can be checked.
set -euo pipefail
cd "$(dirname "$0")/.."

# tree stores the working tree in git's objects, through an index of its own,
# and prints its id.
tree() {
	cp "$(git rev-parse --git-path index)" "$index" 2>/dev/null || true
	GIT_INDEX_FILE=$index git add --all
	GIT_INDEX_FILE=$index git write-tree
}

mkdir -p .tmp
index=$(mktemp "$PWD/.tmp/drift.XXXXXX")
trap 'rm -f "$index" "$index.lock"' EXIT

before=$(tree)
make generate
after=$(tree)

if [[ $before != "$after" ]]; then
	git --no-pager diff --stat --patch "$before" "$after" | head -n 200
	echo 'drift: these files were stale; commit what make generate wrote' >&2
	exit 1
fi
