// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/fiducial-dev/fiducial/kicad/picture"
)

// absolute is a path as the user means it, seen from where the command runs.
func (a *app) absolute(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(a.Dir, name)
}

// writePage writes the page and returns where it is. Without a name it goes into .fiducial, which git is told to ignore:
// a new file in the tree would stand in the way of the next run.
func (a *app) writePage(p place, name string, sides [2]revision, d *picture.Diff, title string) (file string, err error) {
	if name != "" {
		file = a.absolute(name)
	} else {
		dir := filepath.Join(p.top, ".fiducial", "diff")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*\n"), 0o600); err != nil {
			return "", err
		}
		file = filepath.Join(dir, sides[0].short+".."+sides[1].short+".html")
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".diff-*.html")
	if err != nil {
		return "", err
	}
	err = errors.Join(d.WriteHTML(f, title), f.Chmod(0o644), f.Close())
	if err == nil {
		err = patiently(runtime.GOOS, func() error { return os.Rename(f.Name(), file) })
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return file, nil
}

// pagePatience is how long a page that another program has open is waited for.
const pagePatience = 3 * time.Second

// patiently does a step on a file. On Windows it is done again for a while when a browser, an editor or a virus scanner has
// the file open; the numbers are those of ERROR_ACCESS_DENIED, ERROR_SHARING_VIOLATION and ERROR_LOCK_VIOLATION,
// https://learn.microsoft.com/windows/win32/debug/system-error-codes--0-499-. Package task/workspace does the same.
func patiently(goos string, step func() error) error {
	var waited time.Duration
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		err := step()
		code, _ := errors.AsType[syscall.Errno](err)
		if err == nil || goos != "windows" || code != 5 && code != 32 && code != 33 || waited >= pagePatience {
			return err
		}
		time.Sleep(pause)
		waited += pause
	}
}

// converter finds what makes a PNG of an SVG, when one is asked for.
func (a *app) converter(dir string) (string, error) {
	if dir == "" {
		return "", nil
	}
	path, err := exec.LookPath("rsvg-convert")
	if err != nil {
		return "", cannot(fmt.Errorf("--png: %w", err), "install librsvg2-bin (Debian, Ubuntu) or librsvg (Homebrew)", "leave --png out: the page has all pictures")
	}
	return path, nil
}

// pngWidth is how many pixels wide a picture is.
const pngWidth = "1600"

// writePNG writes the pictures that differ, with the outlines drawn in.
func writePNG(ctx context.Context, converter, dir string, d *picture.Diff) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var files []string
	for n, v := range d.Views {
		if v.Same() && len(v.Entries) == 0 {
			continue
		}
		for i, side := range []string{"before", "after"} {
			svg := v.Marked(picture.Side(i))
			if svg == nil {
				continue
			}
			file := filepath.Join(dir, fmt.Sprintf("%02d-%s-%s.png", n+1, plainName(v.Name), side))
			cmd := exec.CommandContext(ctx, converter, "--width", pngWidth, "--keep-aspect-ratio", "--output", file, "--unlimited")
			cmd.Stdin = strings.NewReader(string(svg))
			cmd.WaitDelay = time.Second
			if said, err := cmd.CombinedOutput(); err != nil {
				return files, fmt.Errorf("rsvg-convert: %w: %s", err, strings.TrimSpace(string(said)))
			}
			files = append(files, file)
		}
	}
	return files, nil
}

// plainName makes part of a file's name of any text.
func plainName(s string) string {
	const most = 40
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' {
			return r
		}
		return '-'
	}, s)
	for strings.Contains(name, "--") {
		name = strings.ReplaceAll(name, "--", "-")
	}
	return strings.Trim(name[:min(len(name), most)], "-.")
}

// browse shows the page. That it cannot is no failure: the page is there, and its name was told.
func (a *app) browse(ctx context.Context, how, page string) {
	if how == "no" || how == "auto" && (!a.OutTerminal || !screen(runtime.GOOS, a.lookup)) {
		return
	}
	opener := openerOf(runtime.GOOS)
	path, err := exec.LookPath(opener[0])
	if err != nil {
		return
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), path, append(opener[1:], page)...)
	cmd.Env = a.Environ
	if cmd.Start() == nil {
		_ = cmd.Process.Release() // the browser stays when we go
	}
}

// screen reports whether a page can be shown: Windows and macOS have a screen always, elsewhere the environment names it.
func screen(goos string, lookup func(string) string) bool {
	return goos == "windows" || goos == "darwin" || lookup("DISPLAY") != "" || lookup("WAYLAND_DISPLAY") != ""
}

// openerOf is the command by which a system shows a file in the program that is meant for it, without the file.
func openerOf(goos string) []string {
	switch goos {
	case "windows": // start is no program, and cmd would read a name with & as two commands
		return []string{"rundll32", "url.dll,FileProtocolHandler"}
	case "darwin":
		return []string{"open"}
	}
	return []string{"xdg-open"}
}
