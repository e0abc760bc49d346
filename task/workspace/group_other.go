//go:build !unix

// SPDX-License-Identifier: Apache-2.0

package workspace

import "os/exec"

// ownGroup does nothing where there are no process groups.
func ownGroup(*exec.Cmd) {}
