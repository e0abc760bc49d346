//go:build unix && !linux

// SPDX-License-Identifier: Apache-2.0

package postgrestest

import "os/exec"

// dieWithUs needs Linux.
func dieWithUs(*exec.Cmd) {}
