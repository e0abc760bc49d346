#!/usr/bin/env bash
# Gives every Go file that git knows the line
#
#	// SPDX-License-Identifier: Apache-2.0
#
# in a paragraph of its own: at the top, or after the build constraints, which must
# stay first, and never where it would become the package's comment. Files that
# have it, generated files and what lies in testdata stay as they are, so running it
# twice changes nothing the second time. --check changes nothing at all, and fails
# when a file lacks the line.
set -euo pipefail
cd "$(git rev-parse --show-toplevel)"

check=false
case ${1:-} in
--check) check=true ;;
'') ;;
*)
	echo "usage: scripts/spdx.sh [--check]" >&2
	exit 2
	;;
esac

readonly line='// SPDX-License-Identifier: Apache-2.0'
missing=0

# insert prints a file with the line in its place. Comments and blank lines before
# the last //go:build line of the head stay before it.
insert() {
	awk -v line="$line" '
		NR == FNR {
			if (/^package /) done = 1
			if (!done && /^\/\/go:build /) last = FNR
			next
		}
		FNR == 1 && !last { print line; print "" }
		{ print }
		FNR == last { print ""; print line }
	' "$1" "$1"
}

while IFS= read -r -d '' file; do
	[[ $file == testdata/* || $file == */testdata/* ]] && continue
	[[ -f $file ]] || continue
	head -n 20 "$file" | grep -qxF "$line" && continue
	grep -qE '^// Code generated .* DO NOT EDIT\.$' "$file" && continue
	missing=$((missing + 1))
	if $check; then
		echo "$file: has no SPDX line; run scripts/spdx.sh" >&2
		continue
	fi
	new=$(mktemp "$file.XXXXXX")
	insert "$file" >"$new"
	cat "$new" >"$file" # keeps the mode
	rm -f "$new"
done < <(git ls-files -z -- '*.go')

if $check; then
	((missing == 0))
else
	echo "spdx: $missing files were given the line"
fi
