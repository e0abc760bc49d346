// SPDX-License-Identifier: Apache-2.0

package kicadcli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

const (
	windows  = "windows"
	darwin   = "darwin"
	ordinary = "kicad-cli" // its name in PATH
)

// find is the kicad-cli to run: what is named, a path or a name in PATH, and without a name the newest one that KiCad's
// installers have put elsewhere.
func find(named string) (string, error) {
	name := cmp.Or(named, ordinary)
	path, err := exec.LookPath(name)
	if err == nil {
		if path, err = filepath.Abs(path); err == nil {
			return path, nil
		}
	}
	const advice = "install KiCad 8 or newer (6 and older come without a kicad-cli, and that of 7 cannot check) or name its kicad-cli"
	if name != ordinary {
		return "", &Error{Kind: NotFound, Err: err, Detail: fmt.Sprintf("%s is not installed; %s", name, advice)}
	}
	disk := systemDisk()
	pattern := usual(runtime.GOOS)
	for _, p := range installed(pattern, os.DirFS(disk)) {
		if path, lookErr := exec.LookPath(filepath.Join(disk, filepath.FromSlash(p))); lookErr == nil {
			return path, nil
		}
	}
	return "", &Error{Kind: NotFound, Err: err, Detail: fmt.Sprintf("%s is not installed: it is %s; %s", name, nowhere(disk, pattern), advice)}
}

// nowhere tells where was looked.
func nowhere(disk, pattern string) string {
	if pattern == "" {
		return "not in PATH"
	}
	return "neither in PATH nor where KiCad's installers put it, " + filepath.Join(disk, filepath.FromSlash(pattern))
}

// usual is where KiCad's installers put kicad-cli on a system where that is not in PATH, as a pattern of [fs.Glob] from
// the root of the system's disk; "" for none. On macOS see https://docs.kicad.org/9.0/en/cli/cli.html.
func usual(goos string) string {
	switch goos {
	case windows:
		return "Program Files/KiCad/*/bin/kicad-cli.exe"
	case darwin:
		return "Applications/KiCad*/KiCad.app/Contents/MacOS/kicad-cli"
	}
	return ""
}

// release is a version in the name of a folder.
var release = regexp.MustCompile(`[0-9]+(?:\.[0-9]+)*`)

// installed are the kicad-clis that a pattern finds, the newest first. The folder KiCad, without a version, is that of
// the newest on macOS; another one without, such as nightly, comes last.
func installed(pattern string, disk fs.FS) []string {
	found, _ := fs.Glob(disk, pattern) // the patterns are ours
	at := slices.IndexFunc(strings.Split(pattern, "/"), func(part string) bool { return strings.Contains(part, "*") })
	slices.SortStableFunc(found, func(a, b string) int {
		return slices.Compare(numbers(strings.Split(b, "/")[at]), numbers(strings.Split(a, "/")[at]))
	})
	return found
}

// numbers are the parts of a version.
func numbers(folder string) []int {
	if folder == "KiCad" {
		return []int{math.MaxInt}
	}
	var list []int
	for part := range strings.SplitSeq(release.FindString(folder), ".") {
		var n int
		if _, err := fmt.Sscan(part, &n); err == nil {
			list = append(list, n)
		}
	}
	return list
}

// templatesOf is the folder of the stock library tables that belong to a kicad-cli.
func templatesOf(cli string) (string, error) {
	share, err := shareOf(cli)
	return filepath.Join(share, "template"), err
}

// shareOf is the folder of shared files that belongs to a kicad-cli: share/kicad beside its folder, on Windows too
// (C:\Program Files\KiCad\9.0\share\kicad), or SharedSupport within the application on macOS
// (/Applications/KiCad/KiCad.app/Contents/SharedSupport). That is where KiCad 9 itself looks: GetStockEDALibraryPath,
// https://gitlab.com/kicad/code/kicad/-/blob/9.0/common/paths.cpp. Whether there is such a folder is not looked at, but
// for that of macOS.
func shareOf(cli string) (string, error) {
	binary, err := filepath.EvalSymlinks(cli)
	if err != nil {
		return "", err
	}
	base := filepath.Dir(filepath.Dir(binary))
	bundle := filepath.Join(base, "SharedSupport")
	if st, err := os.Stat(bundle); err == nil && st.IsDir() {
		return bundle, nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return filepath.Join(base, "share", "kicad"), nil
}

// Share is KiCad's folder of shared files that belongs to this kicad-cli, with the stock libraries in symbols and
// footprints and their tables in template; /usr/share/kicad on Debian. The folder need not be there: on Debian the
// libraries are packages of their own.
func (r *Runner) Share() (string, error) { return shareOf(r.path) }
