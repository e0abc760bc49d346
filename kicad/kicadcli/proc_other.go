//go:build !unix

// SPDX-License-Identifier: Apache-2.0

package kicadcli

import (
	"os"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

func (run Run) killed() bool { return false }

func owned(os.FileInfo) bool { return true }
