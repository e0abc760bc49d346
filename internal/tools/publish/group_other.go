// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package publish

import "os/exec"

// together leaves it to the context's end to kill the command alone.
func together(*exec.Cmd) {}

func killGroup(*exec.Cmd) {}
