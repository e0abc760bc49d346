// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

type versionJSON struct {
	Version  string `json:"version"`            // of the module, "(devel)" for a build of a checkout
	Revision string `json:"revision,omitempty"` // the commit it was built from
	Modified bool   `json:"modified,omitempty"` // with changes that are not committed
	Go       string `json:"go"`
	Platform string `json:"platform"`
	KiCad    string `json:"kicad_cli,omitempty"`
}

func newVersion(a *app) *cobra.Command {
	var verbose bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say which fiducial this is",
		Long: `Says which fiducial this is and the Go it was built with; with --verbose or --json also the kicad-cli that would run.

JSON keys: version, revision, modified, go, platform, kicad_cli.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.tellVersion(cmd.Context(), verbose) },
	}
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "also ask kicad-cli for its version")
	return cmd
}

func (a *app) tellVersion(ctx context.Context, verbose bool) error {
	v := buildVersion()
	if verbose || a.json {
		v.KiCad = a.kicadVersion(ctx)
	}
	u := a.newUI()
	if a.json {
		return u.Object(v)
	}
	text := "fiducial " + v.Version
	if v.Revision != "" {
		text += " " + v.Revision
	}
	if v.Modified {
		text += " (modified)"
	}
	u.Line("%s, %s, %s", text, v.Go, v.Platform)
	if verbose {
		u.Line("kicad-cli %s", cmp.Or(v.KiCad, "not found"))
	}
	return u.Close()
}

func buildVersion() versionJSON {
	v := versionJSON{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Version = cmp.Or(info.Main.Version, v.Version)
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// kicadVersion is the version of the kicad-cli that would run, "" when there is none that answers.
func (a *app) kicadVersion(ctx context.Context) string {
	r, err := a.runner()
	if err != nil {
		return ""
	}
	defer func() { _ = r.Close() }()
	v, _ := r.Version(ctx) // one that is too old has a version as well
	return v.Text
}
