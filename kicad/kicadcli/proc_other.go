//go:build !unix

// SPDX-License-Identifier: Apache-2.0

package kicadcli

import (
	"os"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

func signal(*os.ProcessState) string { return "" }
