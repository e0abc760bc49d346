// SPDX-License-Identifier: Apache-2.0

package postgrestest

import (
	"os/exec"
	"syscall"
)

// dieWithUs ends the server when this process is killed.
func dieWithUs(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGQUIT }
