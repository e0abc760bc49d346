// SPDX-License-Identifier: Apache-2.0

package kicadcli

import (
	"context"
	"fmt"
	"strings"
)

// A Version is kicad-cli's own.
type Version struct {
	Major, Minor, Patch int
	Text                string // as printed, for instance 9.0.8
}

// Tested is the major version that this package was measured on.
const Tested = 9

// Warning says what to expect of a version that is not the tested one, "" for that one.
func (v Version) Warning() string {
	switch {
	case v.Major == Tested:
		return ""
	case v.Major < Tested:
		return fmt.Sprintf("kicad-cli %s is older than the tested version %d: it refuses files that KiCad %d saved", v.Text, Tested, Tested)
	default:
		return fmt.Sprintf("kicad-cli %s is newer than the tested version %d: its reports may differ", v.Text, Tested)
	}
}

// Version asks kicad-cli for its version, once. The error is TooOld below 8, which has no rule checks for machines.
func (r *Runner) Version(ctx context.Context) (Version, error) { return r.version(ctx) }

func (r *Runner) askVersion(ctx context.Context) (Version, error) {
	run, err := r.exec(ctx, nil, baseLimit, "version")
	if err != nil {
		return Version{}, err
	}
	v := Version{Text: strings.TrimSpace(run.Stdout)}
	if n, _ := fmt.Sscanf(v.Text, "%d.%d.%d", &v.Major, &v.Minor, &v.Patch); n < 2 || run.ExitCode != 0 {
		return v, run.fail(BadOutput, "this is no version of kicad-cli", nil)
	}
	if v.Major < 8 {
		return v, run.fail(TooOld, "version "+v.Text+" cannot check designs; install KiCad 8 or newer", nil)
	}
	return v, nil
}
