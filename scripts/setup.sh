#!/usr/bin/env bash
# Installs what this repository needs and this machine lacks, and says nothing
# when nothing is missing.
#
#	scripts/setup.sh                 Go (only looked for), git, KiCad 8 or newer
#	scripts/setup.sh THING ...       only these: go git kicad cc postgres
#
# KiCad comes with its symbol and footprint libraries; cc is a C compiler, for
# the race detector; postgres is the server's programs, for the tests of
# journal/postgres, which start a server of their own.
#
# Exit status: 0 all is there; 1 something is missing and could not be
# installed (the last lines say what to do); 2 a THING that is unknown.
# Packages come only from apt, and only from the mirror that the machine uses.
set -euo pipefail
export LC_ALL=C # apt translates the words that are read here

readonly kicad_wanted=8
readonly kicad_packages=(kicad kicad-symbols kicad-footprints)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly here
readonly log=$here/.tmp/setup.log

say() { printf 'setup: %s\n' "$*" >&2; }

# have_THING is true when nothing has to be installed for it.

have_go() { # 1.21 or newer, which fetches the version that go.mod states; Debian 12 has 1.19
	local path version
	path=$(command -v go) || return 1
	version=$(head -n 1 "$(dirname "$(readlink -f "$path")")/../VERSION" 2>/dev/null) || version=$(GOTOOLCHAIN=local go version 2>/dev/null) || true
	[[ $version =~ go([0-9]+)\.([0-9]+) ]] && ((BASH_REMATCH[1] * 1000 + BASH_REMATCH[2] >= 1021))
}

have_git() { # 2.39 or newer, for task/workspace
	[[ $(git --version 2>/dev/null) =~ ([0-9]+)\.([0-9]+) ]] && ((BASH_REMATCH[1] * 1000 + BASH_REMATCH[2] >= 2039))
}

have_cc() { command -v "${CC:-gcc}" >/dev/null; }

have_postgres() { command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; }

have_kicad() {
	local major
	major=$(major "$(kicad_version)")
	((major >= kicad_wanted)) && have_libraries "$major"
}

# kicad_version prints the version of the kicad-cli that a command would run,
# or nothing. It asks dpkg where it can: kicad-cli itself takes ten times longer.
kicad_version() {
	local path status limit=()
	path=$(command -v kicad-cli) || return 0
	if [[ $path == /usr/bin/kicad-cli ]] &&
		status=$(dpkg-query -W -f '${db:Status-Abbrev}${Version}' kicad 2>/dev/null) && [[ $status == ii* ]]; then
		echo "${status#ii }"
	else
		command -v timeout >/dev/null && limit=(timeout 30)
		${limit[@]+"${limit[@]}"} kicad-cli version 2>/dev/null </dev/null || true
	fi
}

# major prints the first number of a version, without Debian's epoch, or 0.
major() {
	local version=${1#*:}
	[[ $version =~ ^[0-9]+ ]] && echo "${BASH_REMATCH[0]}" || echo 0
}

# have_libraries looks where KiCad of this major version looks for the symbols
# and footprints that it comes with.
have_libraries() {
	local bin symbols=KICAD$1_SYMBOL_DIR footprints=KICAD$1_FOOTPRINT_DIR share
	[[ -d ${!symbols:-} && -d ${!footprints:-} ]] && return
	bin=$(dirname "$(readlink -f "$(command -v kicad-cli)")")
	for share in "$bin/../share/kicad" "$bin/../SharedSupport"; do
		[[ -d $share/footprints/Resistor_SMD.pretty ]] && compgen -G "$share/symbols/Device.*" >/dev/null && return
	done
	return 1
}

# fail says what is missing and how a person mends it.
fail() {
	say "missing: ${missing[*]}"
	say "$1"
	local thing
	for thing in "${missing[@]}"; do
		case $thing in
		go) say "  go: version 1.26 or newer from https://go.dev/dl/, first on PATH" ;;
		git) say "  git: version 2.39 or newer, from your system's packages" ;;
		kicad) say "  kicad: KiCad $kicad_wanted or newer with its symbol and footprint libraries, from https://www.kicad.org/download/, and kicad-cli on PATH" ;;
		cc) say "  cc: gcc and the C library's headers, from your system's packages" ;;
		postgres) say "  postgres: PostgreSQL's server programs (initdb, pg_ctl), from your system's packages" ;;
		esac
	done
	exit 1
}

# logged runs a command with its output in the log, and shows the end of that
# when the command fails.
logged() {
	printf '$ %s\n' "$*" >>"$log"
	DEBIAN_FRONTEND=noninteractive UCF_FORCE_CONFFOLD=1 "$@" >>"$log" 2>&1 </dev/null && return
	tail -n 15 "$log" >&2
	return 1
}

apt_install() {
	local options=(-y --no-install-recommends -o DPkg::Lock::Timeout=600 -o Dpkg::Options::=--force-confold)
	# Without fsync a power cut can break the system: right only where it is thrown away.
	[[ ${CI:-} == true ]] && options+=(-o Dpkg::Options::=--force-unsafe-io)
	say "installing $* (what apt says is in .tmp/setup.log)"
	logged apt-get install "${options[@]}" "$@" || fail "apt could not install them; mend that, or install by hand:"
}

# candidate prints the lowest major version of KiCad and its libraries that apt
# would install now, and takes apt's options, such as -t.
candidate() {
	local version lowest=999
	while read -r version; do
		version=$(major "$version")
		((version < lowest)) && lowest=$version
	done < <(apt-cache "$@" policy "${kicad_packages[@]}" 2>/dev/null | awk '$1 == "Candidate:" { print $2 }')
	echo $((lowest % 999))
}

# ensure_kicad_source sets release to the apt options that bring a KiCad which
# is new enough. Debian 12 has it in backports only.
ensure_kicad_source() {
	release=()
	(($(candidate) >= kicad_wanted)) && return
	local id codename
	# shellcheck source=/dev/null
	read -r id codename < <(. /etc/os-release && echo "${ID:-} ${VERSION_CODENAME:-}")
	[[ $id == debian && -n $codename ]] || fail "the packages of this system have no KiCad $kicad_wanted; install by hand:"
	release=(-t "$codename-backports")
	apt-cache policy | grep -q "n=$codename-backports,.*c=main" || add_backports "$codename"
	(($(candidate "${release[@]}") >= kicad_wanted)) || fail "$codename-backports has no KiCad $kicad_wanted; install by hand:"
}

# add_backports adds the backports of the mirror that the release itself comes
# from, trusted by the same keys.
add_backports() {
	local file=/etc/apt/sources.list.d/fiducial-backports.sources entry uri keys
	# shellcheck disable=SC2016 # these are apt's variables
	read -r entry uri < <(apt-get indextargets --format '$(SOURCESENTRY) $(REPO_URI)' \
		'Created-By: Packages' 'Origin: Debian' 'Component: main' "Codename: $1" | grep -v ' cdrom:') ||
		fail "apt lists no source for Debian $1 main; add one with $1-backports, or install by hand:"
	keys=$(signed_by "${entry%:*}" "${entry##*:}")
	say "adding $1-backports as $file"
	{
		echo "# Added by fiducial's scripts/setup.sh for KiCad $kicad_wanted or newer."
		printf 'Types: deb\nURIs: %s\nSuites: %s-backports\nComponents: main\n' "$uri" "$1"
		[[ -z $keys ]] || echo "Signed-By:$keys"
	} >"$file"
	logged apt-get update && return
	rm -f "$file"
	fail "apt could not read $1-backports from the mirror in use; install by hand:"
}

# signed_by prints the Signed-By of entry number $2 of a file with apt sources,
# after its colon and with the lines that continue it, or nothing. Apt counts
# lines in a .list file, stanzas in a .sources file.
signed_by() {
	case $1 in
	*.sources)
		awk -v n="$2" '
			/^[ \t]*#/ { next }
			/^[ \t]*$/ { if (open) stanza++; open = 0; on = 0; next }
			{ open = 1 }
			/^[^ \t]/ { on = stanza + 1 == n && tolower($0) ~ /^signed-by:/; sub(/^[^:]*:/, "") }
			on { print }' "$1"
		;;
	*) sed -n "$2s/^[^[]*\\[\\([^]]*[ \\t]\\)\\?signed-by=\\([^] ]*\\).*/ \\2/p" "$1" ;;
	esac
}

# bring installs every missing thing.
bring() {
	local packages=() thing kicad=false release=()
	[[ " ${missing[*]} " == *" go "* ]] && fail "Go is not installed by this script:"
	command -v apt-get >/dev/null || fail "this system has no apt; install by hand:"
	((EUID == 0)) || fail "only root may install packages: run 'sudo scripts/setup.sh ${missing[*]}', or install by hand:"
	mkdir -p "$(dirname "$log")"
	: >"$log"
	# Under sudo they must not become root's: make writes there as whoever has the tree.
	chown --reference="$here" "$(dirname "$log")" "$log" || true
	logged apt-get update || say "apt-get update failed; going on with what apt knows"
	for thing in "${missing[@]}"; do
		case $thing in
		git) packages+=(git ca-certificates) ;;
		kicad) kicad=true ;;
		cc) packages+=(gcc libc6-dev) ;;
		postgres)
			without_cluster
			packages+=(postgresql)
			;;
		esac
	done
	((${#packages[@]} == 0)) || apt_install "${packages[@]}"
	if $kicad; then
		ensure_kicad_source
		apt_install "${release[@]}" "${kicad_packages[@]}"
	fi
	hash -r
}

# without_cluster keeps Debian's PostgreSQL from starting a server of its own:
# only the programs are needed.
without_cluster() {
	local conf=/etc/postgresql-common/createcluster.conf
	[[ -e $conf ]] && return
	mkdir -p "$(dirname "$conf")"
	echo 'create_main_cluster = false' >"$conf"
}

# ensure adds the things that are not there to missing.
ensure() {
	missing=()
	local thing
	for thing in "$@"; do
		"have_$thing" || missing+=("$thing")
	done
	((${#missing[@]} == 0))
}

(($# > 0)) || set -- go git kicad
for thing in "$@"; do
	case $thing in
	go | git | kicad | cc | postgres) ;;
	*)
		say "unknown: $thing (known are go git kicad cc postgres)"
		exit 2
		;;
	esac
done

missing=()
ensure "$@" && exit
bring
ensure "$@" || fail "apt installed them, yet they are not found; is an older one first on PATH?"
say "done"
