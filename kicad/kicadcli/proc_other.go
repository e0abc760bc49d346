//go:build !unix

package kicadcli

import (
	"os"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

func signal(*os.ProcessState) string { return "" }
