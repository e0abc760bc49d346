//go:build unix && !linux

package postgrestest

import "os/exec"

// dieWithUs needs Linux.
func dieWithUs(*exec.Cmd) {}
