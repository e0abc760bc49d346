// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/project"
)

// ConfigName is the file in a project's folder that says where its documents are and which of them were generated. It
// is to be committed, so that everybody's documents are protected by the same hashes.
const ConfigName = ".fiducial.json"

// A Config is what [ConfigName] holds. Projects that share a folder share the file.
type Config struct {
	Version  int                      `json:"version"` // 1
	Projects map[string]ProjectConfig `json:"projects"`
}

// A ProjectConfig is what a config says of one project.
type ProjectConfig struct {
	// Docs is the folder of the documents, slash-separated and relative to the config's.
	Docs string `json:"docs"`
	// Generated maps the documents that init made, by their names in Docs, to "sha256:" and the hash of their bytes.
	Generated map[string]string `json:"generated"`
	// Edited maps those of them that a run of the agent has edited since to the hash of what it left. Nobody edited such a
	// document by hand: init repairs it by the design, and keeps what the run wrote.
	Edited map[string]string `json:"edited,omitempty"`
}

// Knows reports whether a document's bytes are as init made them, or as a run left them: no hand has changed them since.
func (p ProjectConfig) Knows(name string, src []byte) bool {
	sum := Hash(src)
	return p.Generated[name] == sum || p.Edited[name] == sum
}

// EditedBy notes in a project's config what a run made of documents, by their names in Docs. A document that init did not
// make, or that a hand had changed before the run, is for the caller to leave out. It returns the bytes of the config's
// file, nil where nothing is to be noted.
func (c Config) EditedBy(proj string, documents map[string][]byte) []byte {
	mine := c.Projects[proj]
	edited := maps.Clone(mine.Edited)
	changed := false
	for name, src := range documents {
		if mine.Generated[name] == "" || mine.Knows(name, src) {
			continue
		}
		if edited == nil {
			edited = map[string]string{}
		}
		edited[name], changed = Hash(src), true
	}
	if !changed {
		return nil
	}
	next := Config{Projects: maps.Clone(c.Projects)}
	mine.Edited = edited
	next.Projects[proj] = mine
	return next.bytes()
}

// ReadConfig reads a project's config. A missing one is the zero Config and no error.
func ReadConfig(fsys fs.FS, proj *project.Project) (Config, error) {
	name := path.Join(proj.Dir, ConfigName)
	src, err := project.Read(fsys, name, maxDocument)
	if errors.Is(err, fs.ErrNotExist) {
		return Config{}, nil
	}
	if err != nil {
		return Config{}, fmt.Errorf("docs: %w", err)
	}
	var c Config
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return Config{}, fmt.Errorf("docs: %s cannot be read: %w; mend it, or remove it and run fiducial init", name, err)
	}
	if c.Version != 1 {
		return Config{}, fmt.Errorf("docs: %s has version %d, and this program knows version 1; use a newer fiducial", name, c.Version)
	}
	for key, p := range c.Projects {
		if !fs.ValidPath(path.Join(proj.Dir, p.Docs)) || path.IsAbs(p.Docs) {
			return Config{}, fmt.Errorf("docs: %s puts the documents of %s into %q, which is outside the repository", name, key, p.Docs)
		}
	}
	return c, nil
}

// bytes is the file; the same config gives the same bytes.
func (c Config) bytes() []byte {
	c.Version = 1
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		panic(err) // strings and a number
	}
	return append(data, '\n')
}

// Folder is where a project's documents are: what its config says, else the folder that was found, else the one that
// [PlanInit] would make.
func (c Config) Folder(proj *project.Project) string {
	if p, ok := c.Projects[proj.Name]; ok {
		return path.Join(proj.Dir, p.Docs)
	}
	if proj.Docs != "" {
		return proj.Docs
	}
	return path.Join(proj.Dir, defaultDocs(proj))
}

// defaultDocs is the folder's name: docs, or docs/NAME where several projects share the folder.
func defaultDocs(proj *project.Project) string {
	if len(proj.Others) > 0 {
		return "docs/" + proj.Name
	}
	return "docs"
}

// Hash is the mark by which a config knows a document. Windows line ends count as plain ones, for git may put them in when
// it checks a document out (core.autocrlf).
func Hash(src []byte) string {
	sum := sha256.Sum256(plainEnds(src))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func plainEnds(src []byte) []byte { return bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n")) }

// maxDocument is how large a document may be; a larger one holds no tables by hand.
const maxDocument = 5 << 20

// ReadAll reads a project's documents: the .md files of its docs folder and of the folders in it, those named BOM or
// PINOUT beside the project, and the headers of pins ([IsHeader]) in these places and in the firmware's folders. Documents that cannot be read are problems, one text each that names the file.
func ReadAll(fsys fs.FS, proj *project.Project, c Config) (documents []*Document, problems []string, err error) {
	var files []string
	folder := c.Folder(proj)
	err = fs.WalkDir(fsys, folder, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil && name == folder && errors.Is(err, fs.ErrNotExist):
			return fs.SkipDir
		case err != nil:
			problems = append(problems, err.Error())
			return nil
		case e.IsDir() && name != folder && (strings.HasPrefix(e.Name(), ".") || other(c, proj, name)):
			return fs.SkipDir
		case !e.IsDir() && (strings.EqualFold(path.Ext(name), ".md") || IsHeader(name)):
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("docs: %w", err)
	}
	beside, err := fs.ReadDir(fsys, proj.Dir)
	if err != nil {
		return nil, nil, fmt.Errorf("docs: %w", err)
	}
	for _, e := range beside {
		low := strings.ToLower(e.Name())
		if !e.IsDir() && path.Ext(low) == ".md" && (strings.HasPrefix(low, "bom") || strings.HasPrefix(low, "pinout")) && len(proj.Others) == 0 {
			files = append(files, path.Join(proj.Dir, e.Name()))
		}
	}
	files = append(files, headers(fsys, proj)...)
	slices.Sort(files)
	for _, name := range slices.Compact(files) {
		src, err := project.Read(fsys, name, maxDocument)
		if err == nil {
			var doc *Document
			if doc, err = ReadDocument(name, src); err == nil {
				documents = append(documents, doc)
				continue
			}
		}
		problems = append(problems, err.Error())
	}
	return documents, problems, nil
}

// other reports whether a folder holds the documents of another project.
func other(c Config, proj *project.Project, dir string) bool {
	for name, p := range c.Projects {
		if name != proj.Name && path.Join(proj.Dir, p.Docs) == dir {
			return true
		}
	}
	return false
}

// Claims reports whether any document makes claims about parts or pins, or must name every part, so that a comparison
// says something.
func Claims(documents []*Document) bool {
	for _, doc := range documents {
		if !History(doc.Name) && (doc.bom() || len(doc.defines) > 0 || len(doc.pinout) > 0 ||
			slices.ContainsFunc(doc.Tables, func(t *Table) bool { return t.parts() || t.pins() })) {
			return true
		}
	}
	return false
}
