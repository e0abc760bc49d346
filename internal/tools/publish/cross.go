// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A Platform is what a binary runs on.
type Platform struct{ OS, Arch string }

// Platforms are those that the command is built for.
func Platforms() []Platform {
	var all []Platform
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			all = append(all, Platform{system, arch})
		}
	}
	return all
}

// ParsePlatform reads "linux/amd64"; the empty string is all of [Platforms].
func ParsePlatform(s string) ([]Platform, error) {
	if s == "" {
		return Platforms(), nil
	}
	var known []string
	for _, p := range Platforms() {
		name := p.OS + "/" + p.Arch
		if name == s {
			return []Platform{p}, nil
		}
		known = append(known, name)
	}
	return nil, fmt.Errorf("no platform %q; there are %s", s, strings.Join(known, ", "))
}

// Cross builds the command of the working tree for each platform into
// t.Work/dist, without cgo, without paths of this machine and without symbol
// tables (panics keep their names and lines), and prints the sizes. The go command
// stamps the version: that of the tag kicad/vX.Y.Z when the commit has one, else a
// pseudo-version with the commit, +dirty when there were changes.
func Cross(ctx context.Context, t Trial, platforms []Platform) error {
	dist, err := filepath.Abs(filepath.Join(t.Work, "dist"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dist, 0o755); err != nil {
		return err
	}
	for _, p := range platforms {
		name := fmt.Sprintf("fiducial-%s-%s", p.OS, p.Arch)
		if p.OS == "windows" {
			name += ".exe"
		}
		sh := shell{
			dir: filepath.Join(t.Repo, "kicad"),
			env: append(t.Env, "GOWORK=off", "CGO_ENABLED=0", "GOOS="+p.OS, "GOARCH="+p.Arch, "GOFLAGS=-mod=readonly"),
		}
		file := filepath.Join(dist, name)
		if _, err := sh.run(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags", "-s -w", "-o", file, "./cmd/fiducial"); err != nil {
			return err
		}
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		fmt.Fprintf(t.Out, "cross     %-30s %6.1f MB\n", strings.TrimSuffix(name, ".exe"), float64(info.Size())/1e6)
	}
	return nil
}
