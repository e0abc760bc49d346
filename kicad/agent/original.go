// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
)

// original is a file as it stood when the run began.
func (b *Bench) original(ctx context.Context, name string) ([]byte, error) {
	data, err := b.session.Snapshot.File(ctx, name)
	if !errors.Is(err, fs.ErrNotExist) {
		return data, err
	}
	if b.session.Resumed {
		return nil, err // what is there now may be the run's
	}
	return b.content(name) // an ignored file is in no snapshot
}

// baseInput is what kicad-cli looks at for the baseline: the project as it stood
// when the run began, also when another process has changed files since.
func (b *Bench) baseInput(ctx context.Context) (func(name string) kicadcli.Input, error) {
	overlay := b.base.overlay
	if b.session.Resumed {
		var err error
		if overlay, err = b.overlayBefore(ctx); err != nil {
			return nil, err
		}
	}
	return func(name string) kicadcli.Input {
		return kicadcli.Input{File: b.abs(name), Root: b.top, Overlay: overlay}
	}, nil
}

// overlayBefore are the rules of the start and every file of the project that has changed since, as it stood then; nil
// for one that was not there.
func (b *Bench) overlayBefore(ctx context.Context) (map[string][]byte, error) {
	changes, err := b.session.Snapshot.Changed(ctx)
	if err != nil {
		return nil, err
	}
	overlay := map[string][]byte{}
	maps.Copy(overlay, b.base.overlay)
	for _, c := range changes {
		name, inside := b.inProject(c.Path)
		if !inside {
			continue
		}
		data, err := b.session.Snapshot.File(ctx, c.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		overlay[name] = data
	}
	return overlay, nil
}

// inProject is a path of the repository relative to the project's folder.
func (b *Bench) inProject(name string) (string, bool) {
	if b.project.Dir == "." {
		return name, true
	}
	return strings.CutPrefix(name, path.Clean(b.project.Dir)+"/")
}
