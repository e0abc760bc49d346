#!/usr/bin/env bash
# Shows the main job on the bundled board, in a folder that is thrown away: no
# account, no key, no network.
set -euo pipefail
cd "$(dirname "$0")/.."
began=${EPOCHREALTIME/[.,]/}

echo 'building the command (the first time takes a minute or two)'
go build -C kicad -o ../.tmp/fiducial ./cmd/fiducial
go build -C kicad -o ../.tmp/bundled ./internal/board/write
fiducial=$PWD/.tmp/fiducial bundled=$PWD/.tmp/bundled

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The demo must not depend on who runs it: no key, no configuration, the planner.
unset ANTHROPIC_API_KEY OPENAI_API_KEY GEMINI_API_KEY GOOGLE_API_KEY
export FIDUCIAL_MODEL=builtin GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=Demo GIT_AUTHOR_EMAIL=demo@example.org GIT_COMMITTER_NAME=Demo GIT_COMMITTER_EMAIL=demo@example.org

# step says what comes next; run shows a command and runs it.
step() { printf '\n── %s\n' "$*"; }
run() {
	printf '$ %s\n' "${*/#$fiducial/fiducial}"
	"$@"
}

# share prints how much of each sheet the last commit changed.
share() {
	git diff --numstat HEAD~1 HEAD -- '*.kicad_sch' | while read -r added deleted file; do
		lines=$(git show "HEAD~1:$file" | wc -l)
		awk -v n=$((added > deleted ? added : deleted)) -v of="$lines" -v f="$file" \
			'BEGIN { printf "%s: %d of %d lines, %.2f percent\n", f, n, of, 100 * n / of }'
	done
}

step 'a KiCad project in a git repository: the bundled board "beacon", two sheets and a routed board'
"$bundled" "$work"
cd "$work"
git init -q -b main
git add -A
git commit -q -m 'beacon as drawn'
git ls-files | sed 's/^/  /'

step 'is it clean? ERC and DRC by the real kicad-cli'
run "$fiducial" check

step 'a request in words: the net goes through both sheets, the board and the documents'
run "$fiducial" do 'rename net STATUS to HEARTBEAT'

step 'what changed: one commit, a few lines'
run git --no-pager show --stat --format='%h %s%n%n%b' HEAD
share
git diff -U0 HEAD~1 HEAD -- '*.kicad_sch' docs/PINOUT.md | grep -E '^(diff|[-+][^-+])' || true

step 'a request that would break the design: BUTTON is another net, and KiCad joins nets of one name without a word'
rc=0
run "$fiducial" do 'rename net HEARTBEAT to BUTTON' || rc=$?
[[ $rc -eq 1 ]] || { echo "the demo expected a refusal (exit code 1) and got $rc" >&2; exit 1; }

step 'the tree is untouched'
run git status --short
[[ -z $(git status --short) ]] || { echo 'the demo expected a clean tree' >&2; exit 1; }
git --no-pager log --oneline

step 'past runs, and the summary of the first'
run "$fiducial" runs
first=$(find .fiducial/runs -mindepth 1 -maxdepth 1 | sort | head -1)
run cat "$first/summary.md"

step 'with a real model, in a repository of yours'
cat <<'END'
  export ANTHROPIC_API_KEY=...      (or OPENAI_API_KEY, or GEMINI_API_KEY)
  fiducial do "give the LED a 470 ohm resistor and bring the documents in line"
  fiducial do --model compat:qwen3 "..."   with FIDUCIAL_BASE_URL=http://127.0.0.1:11434/v1
END
printf '\nThe demo took %.1f s.\n' "$(((${EPOCHREALTIME/[.,]/} - began) / 1000))e-3"
