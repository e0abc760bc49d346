// SPDX-License-Identifier: Apache-2.0

package kicadcli

import "path/filepath"

// The folders of a home on Windows that programs keep their data in.
const (
	roaming = "home/AppData/Roaming"
	local   = "home/AppData/Local"
)

// A setting is where a run finds things, all of it absolute.
type setting struct {
	goos string
	bin  string // the folder of kicad-cli
	home string // the Runner's private folder
	tmp  string // for this run alone: kicad-cli keeps a lock there
	base string // the folder of Windows itself, "" elsewhere
}

// environment is the whole environment of a run. That KiCad goes by the variables KICAD_..._HOME on every system, and
// with them makes the folders that seed makes, was measured on 9.0.8 under Linux.
func (s setting) environment() []string {
	in := func(dir string) string { return filepath.Join(s.home, dir) }
	env := []string{
		"HOME=" + in("home"), "KICAD_CONFIG_HOME=" + in("config"), "KICAD_CACHE_HOME=" + in("cache"), "KICAD_DOCUMENTS_HOME=" + in("data"),
	}
	switch s.goos {
	case windows:
		return append(env,
			"PATH="+s.bin+";"+s.base+`\System32;`+s.base,
			"SystemRoot="+s.base, "windir="+s.base, "TEMP="+s.tmp, "TMP="+s.tmp,
			"USERPROFILE="+in("home"), "APPDATA="+in(roaming), "LOCALAPPDATA="+in(local))
	case darwin: // it has no C.UTF-8
		return append(env, "PATH="+s.bin+":/usr/bin:/bin", "TMPDIR="+s.tmp, "LC_ALL=en_US.UTF-8")
	}
	return append(env, "PATH="+s.bin+":/usr/bin:/bin", "TMPDIR="+s.tmp, "LC_ALL=C.UTF-8", "XDG_CACHE_HOME="+in("cache"), "XDG_DATA_HOME="+in("data"))
}
