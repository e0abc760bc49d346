// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
)

// installKiCad is the remedy where there is no kicad-cli, or one that is too old.
const installKiCad = "install KiCad 8 or newer (9 is tested) with its command line tools, see https://www.kicad.org/download/"

// maxListed is how many names a message lists.
const maxListed = 10

// listed is a list of names in a sentence, cut to what a message can hold.
func listed(names []string) string {
	if len(names) <= maxListed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), len(names)-maxListed)
}

// mayBe says that a part of an id fits several.
func mayBe(which string, ids []string) error {
	return cannot(fmt.Errorf("%q may be any of %s", which, listed(ids)), "write more of the id")
}

// systemCall is what a system call says of a file that is missing.
var systemCall = regexp.MustCompile(`\b(?:open|openat|stat|statat|lstat|readlink) ([^:]+): no such file or directory`)

// inWords puts into words what a text takes from a system call about a file that is missing.
func inWords(text string) string {
	return systemCall.ReplaceAllString(strings.TrimSpace(text), "there is no file or folder $1")
}

// noKiCad is the failure of a command that finds no kicad-cli. The cause says where it looked.
func noKiCad(cause error) error {
	text := cause.Error()
	if e, ok := errors.AsType[*kicadcli.Error](cause); ok {
		text, _, _ = strings.Cut(e.Detail, "; install KiCad") // the remedies say so
	}
	return cannot(fmt.Errorf("%s (KiCad 6 and older come without a kicad-cli)", text),
		installKiCad, "or name the kicad-cli that is there: --kicad-cli PATH")
}

// unusable says why a kicad-cli can check nothing at all, "" when it can. One that is slow today is not meant.
func unusable(ctx context.Context, r *kicadcli.Runner) string {
	v, err := r.Version(ctx)
	e, ok := errors.AsType[*kicadcli.Error](err)
	switch {
	case !ok || e.Kind == kicadcli.Timeout:
		return ""
	case e.Kind == kicadcli.TooOld:
		return fmt.Sprintf("version %s at %s cannot check designs; %s", v.Text, r.Path(), installKiCad)
	case e.Kind == kicadcli.BadOutput:
		return fmt.Sprintf("%s does not work as a kicad-cli: asked for its version it ended with exit code %d and told no version", r.Path(), e.ExitCode)
	}
	return fmt.Sprintf("%s does not work: %s", r.Path(), words(e))
}

// unread is the failure of a command that needs the whole schematic: kicad-cli's where that can read nothing.
func unread(ctx context.Context, r *kicadcli.Runner, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if why := unusable(ctx, r); why != "" {
		return cannot(errors.New(why), installKiCad, "or name the kicad-cli that is there: --kicad-cli PATH")
	}
	return cannot(err, "mend the schematic first; fiducial check says what is wrong")
}
