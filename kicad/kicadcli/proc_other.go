//go:build !unix

// SPDX-License-Identifier: Apache-2.0

package kicadcli

import (
	"os"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

func signal(*os.ProcessState) string { return "" }

func (run Run) killed() bool { return false }

func owned(os.FileInfo) bool { return true }

// take knows no locks here: no folder is taken for abandoned.
func take(*os.File) bool { return false }
