//go:build !unix && !windows

// SPDX-License-Identifier: Apache-2.0

package kicadcli

import (
	"os"
	"path/filepath"
)

func signal(*os.ProcessState) string { return "" }

// own knows no locks here: see claim.
func own(home string) (*os.File, error) { return os.Create(filepath.Join(home, ownerFile)) }

// claim takes no folder for abandoned.
func claim(name string) (*os.File, bool, error) {
	f, err := os.Open(name)
	return f, false, err
}

func windowsFolder() string { return "" }

func systemDisk() string { return "/" }
