// SPDX-License-Identifier: Apache-2.0

package kicadcli

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/fiducial-dev/fiducial/kicad/project"
)

// An Input names what kicad-cli is to look at.
type Input struct {
	// File is the .kicad_sch or .kicad_pcb.
	File string
	// Root is the folder above which the design refers to nothing, the repository as a rule: relative paths of
	// library tables may lead up to it. Empty means the nearest folder above File with a .git, else File's own.
	Root string
	// Overlay replaces files by other contents, without writing them to the user's folder. Keys are slash-separated
	// and relative to File's folder; nil content leaves the file out.
	Overlay map[string][]byte
}

// At is the [Input] for a file as it stands.
func At(file string) Input { return Input{File: file} }

// A view is a folder that looks like the user's.
type view struct {
	base string // to be removed
	root string // the user's folder that base stands for
	dir  string // where the file is
	file string
	size int64 // of the KiCad files around it

	links placer
}

// real puts the user's paths in the place of the view's, and takes the folder off the output's.
func (v *view) real(s string) string {
	if v == nil {
		return s
	}
	s = strings.ReplaceAll(s, v.base, v.root)
	return strings.ReplaceAll(s, filepath.Dir(v.base)+string(filepath.Separator), "")
}

func (v *view) out(name string) string { return filepath.Join(filepath.Dir(v.base), name) }

func (v *view) close() { _ = os.RemoveAll(filepath.Dir(v.base)) }

// The time limits: only what hangs is to meet one, also on a machine that is busy with something else. Alone, kicad-cli
// 9.0.8 takes 2 s for a small design, 2 s for each MB of sheets and 6 s for each MB of a board that DRC looks at.
const (
	baseLimit = 90 * time.Second
	perMB     = 10 * time.Second
	slowPerMB = 30 * time.Second // for DRC and pictures
)

// limit is a time limit that grows with the design.
func (v *view) limit(perMB time.Duration) time.Duration {
	return baseLimit + time.Duration(float64(perMB)*float64(v.size)/(1<<20))
}

// kindOf is the extension that tells what a file is.
func kindOf(file string) string { return filepath.Ext(file) }

// Extensions of the files that are probed.
const (
	Schematic = ".kicad_sch"
	Board     = ".kicad_pcb"
)

// open makes the view of an input. Lock files are left out, and so is what only git and this program use.
func (r *Runner) open(in Input) (*view, error) {
	file, err := filepath.Abs(in.File)
	if err != nil {
		return nil, &Error{Kind: BadInput, Detail: "no such path: " + in.File, Err: err}
	}
	if k := kindOf(file); k != Schematic && k != Board {
		return nil, &Error{Kind: BadInput, Detail: in.File + " is neither a .kicad_sch nor a .kicad_pcb file (KiCad 5 designs must be saved by KiCad 6 or newer first)"}
	}
	dir := filepath.Dir(file)
	root, err := rootOf(in.Root, dir)
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(root, dir)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, &Error{Kind: BadInput, Detail: in.File + " is not inside " + root, Err: err}
	}
	if _, replaced := in.Overlay[filepath.Base(file)]; !replaced {
		if err := look(root, filepath.Join(rel, filepath.Base(file))); err != nil {
			return nil, err
		}
	}
	if bad := waiting(dir, 0); bad != "" {
		if short, err := filepath.Rel(root, bad); err == nil {
			bad = filepath.ToSlash(short)
		}
		return nil, &Error{Kind: BadInput, Detail: bad + " is a pipe, a socket or a device, which kicad-cli would wait for; put the file itself there, or remove it"}
	}
	top, err := os.MkdirTemp(filepath.Join(r.home, "views"), "")
	if err != nil {
		return nil, r.noRoom("cannot make a temporary folder", err)
	}
	v := &view{base: filepath.Join(top, "v"), root: root, links: r.links}
	v.dir = filepath.Join(v.base, rel)
	v.file = filepath.Join(v.dir, filepath.Base(file))
	if err := v.fill(filepath.ToSlash(rel), in.Overlay); err != nil {
		v.close()
		return nil, r.noRoom("cannot make a view of "+dir, err)
	}
	r.faults.note(viewFault, nil)
	return v, nil
}

// viewFault is what a fault of the private folders is noted as.
const viewFault = "view"

// noRoom is a fault of the private folders, such as a full disk.
func (r *Runner) noRoom(detail string, err error) error {
	e := &Error{Kind: Environment, Detail: detail, Err: err}
	r.faults.note(viewFault, e)
	return e
}

// look refuses a file that kicad-cli could only fail on, or that is not the repository's.
func look(root, name string) error {
	r, err := os.OpenRoot(root)
	if err != nil {
		return &Error{Kind: BadInput, Detail: "no such folder: " + root, Err: err}
	}
	defer func() { _ = r.Close() }()
	err = project.Look(project.Files(r), filepath.ToSlash(name))
	if err == nil {
		return nil
	}
	e := &Error{Kind: BadInput, Detail: filepath.ToSlash(name) + " is not a readable file", Err: err}
	if f, ok := errors.AsType[*project.FileError](err); ok {
		e.Detail = f.Error()
	}
	return e
}

// deepest is how far below a project's folder its own files are looked for.
const deepest = 5

// waiting finds a file of KiCad's below a folder that whoever opens it would wait for, "" when there is none.
func waiting(dir string, depth int) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		switch t := e.Type(); {
		case t.IsDir():
			if depth < deepest && !strings.HasPrefix(e.Name(), ".") && e.Name() != "node_modules" {
				if bad := waiting(name, depth+1); bad != "" {
					return bad
				}
			}
		case t.IsRegular() || !ofKiCad(e.Name()):
		default:
			if st, err := os.Stat(name); err == nil && !st.Mode().IsRegular() && !st.IsDir() {
				return name
			}
		}
	}
	return ""
}

// ofKiCad tells the files that kicad-cli may open by itself.
func ofKiCad(name string) bool {
	return strings.HasPrefix(filepath.Ext(name), ".kicad_") || name == "sym-lib-table" || name == "fp-lib-table"
}

func rootOf(root, dir string) (string, error) {
	if root != "" {
		abs, err := filepath.Abs(root)
		if err != nil {
			return "", &Error{Kind: BadInput, Detail: "no such path: " + root, Err: err}
		}
		return abs, nil
	}
	for up := dir; ; up = filepath.Dir(up) {
		if _, err := os.Lstat(filepath.Join(up, ".git")); err == nil {
			return up, nil
		}
		if up == filepath.Dir(up) {
			return dir, nil
		}
	}
}

// fill makes the folders that must be real, puts links to everything beside them, and writes the overlay.
func (v *view) fill(project string, overlay map[string][]byte) error {
	replaced := map[string][]byte{}
	folders := map[string]bool{}
	addFolder := func(p string) {
		for ; !folders[p]; p = path.Dir(p) {
			folders[p] = true
		}
	}
	folders["."] = true
	addFolder(project)
	for name, data := range overlay {
		p := path.Join(project, name)
		if !fs.ValidPath(p) {
			return &fs.PathError{Op: "overlay", Path: name, Err: fs.ErrInvalid}
		}
		replaced[p] = data
		addFolder(path.Dir(p))
	}
	for folder := range folders {
		if err := v.mirror(folder, project, folders, replaced); err != nil {
			return err
		}
	}
	for p, data := range replaced {
		if data == nil {
			continue
		}
		v.size += int64(len(data))
		if err := os.WriteFile(filepath.Join(v.base, filepath.FromSlash(p)), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// mirror makes one folder of the view.
func (v *view) mirror(folder, project string, folders map[string]bool, replaced map[string][]byte) error {
	from, to := filepath.Join(v.root, filepath.FromSlash(folder)), filepath.Join(v.base, filepath.FromSlash(folder))
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // an overlay may add a folder
		return err
	}
	for _, e := range entries {
		p := path.Join(folder, e.Name())
		_, skip := replaced[p]
		if skip || folders[p] || unwanted(e.Name()) {
			continue
		}
		if folder == project {
			v.size += weigh(filepath.Join(from, e.Name()), e)
		}
		if err := v.links.place(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// isLock tells KiCad's lock files.
func isLock(name string) bool { return strings.HasPrefix(name, "~") && strings.HasSuffix(name, ".lck") }

// weigh adds up the KiCad files in a project folder and the folders right below it, for the time limit.
func weigh(p string, e fs.DirEntry) int64 {
	if !e.IsDir() {
		return sizeOf(p)
	}
	children, _ := os.ReadDir(p)
	var sum int64
	for _, c := range children {
		sum += sizeOf(filepath.Join(p, c.Name()))
	}
	return sum
}

func sizeOf(p string) int64 {
	if k := kindOf(p); k != Schematic && k != Board {
		return 0
	}
	st, err := os.Stat(p)
	if err != nil || !st.Mode().IsRegular() {
		return 0
	}
	return cmp.Or(st.Size(), 1)
}
