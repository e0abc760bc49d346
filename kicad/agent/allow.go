// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/docs"
)

// What tools write: files of a KiCad design, and documents.
var (
	designFiles = []string{".kicad_sch", ".kicad_pcb", ".kicad_pro", ".kicad_sym", ".kicad_mod", ".kicad_dru", ".kicad_wks"}
	documents   = []string{".md", ".markdown", ".txt", ".rst", ".adoc", ".csv", ".tsv"}
)

// instructions are documents by which programs that write code are told what to do.
var instructions = regexp.MustCompile(`(?i)^(claude|agents?|gemini|qwen|warp|skill|copilot-instructions)(\..*)?\.(md|markdown|txt|rst|adoc)$|\.(instructions|prompt|chatmode|agent)\.md$`)

// settings are files of programs that are called like documents.
var settings = regexp.MustCompile(`(?i)^(cmakelists|meson_options|conandata|.*requirements.*|constraints)\.txt$|^(package|package-lock|composer|tsconfig.*|jsconfig|deno|launch|settings|tasks)\.json$`)

const whatToolsWrite = "tools write design files and documents (" + ".md, .txt, .rst, .adoc, .csv, .tsv, .json in the docs folder, and a firmware's pins.h that is there), " +
	"never programs or settings of programs"

// allowed keeps tools to design files and documents, by the name: what is no file of either may be a program or what
// tells one what to do.
func (b *Bench) allowed(name string) error {
	if err := writable(name); err != nil {
		return err
	}
	base := path.Base(name)
	ext := strings.ToLower(path.Ext(base))
	registry := b.base.papers.registryFile()
	reason := ""
	switch {
	case instructions.MatchString(base):
		reason = "it tells programs what to do; " + whatToolsWrite
	case name == registry, base == "sym-lib-table", base == "fp-lib-table", slices.Contains(designFiles, ext), docs.IsHeader(base):
	case settings.MatchString(base):
		reason = "it is a file of settings; " + whatToolsWrite
	case slices.Contains(documents, ext) && base != ext:
	case ext == ".json" && strings.HasPrefix(name, b.base.papers.folder+"/"):
	default:
		reason = fmt.Sprintf("%q is no name of a design file or document; %s. A person can make it", base, whatToolsWrite)
	}
	if reason != "" {
		return &PathError{Path: name, Reason: reason}
	}
	return nil
}

// secret are names of files that hold keys and passwords.
var secret = regexp.MustCompile(`(?i)\.(pem|key|p12|pfx|p8|jks|keystore|kdbx|gpg|ppk|ovpn|env)$|^(id_(rsa|dsa|ecdsa|ed25519).*|(credentials?|secrets?)(\.(ya?ml|json|toml|ini|txt|csv))?|env|_netrc)$`)

// readable keeps tools from what is no part of a design and must not go to a model: what begins with a dot, as settings
// and passwords do, and keys.
func readable(name string) error {
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case strings.HasPrefix(part, ".") && part != "." && part != docs.ConfigName:
			return &PathError{Path: name, Reason: "files and folders whose names begin with a dot are settings of programs, and often hold passwords: no tool reads them"}
		case secret.MatchString(part):
			return &PathError{Path: name, Reason: "by its name it holds keys or passwords: no tool reads it"}
		}
	}
	return nil
}
