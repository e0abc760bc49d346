// SPDX-License-Identifier: Apache-2.0

// Write copies the bundled board project into a folder.
package main

import (
	"fmt"
	"os"

	"github.com/fiducial-dev/fiducial/kicad/internal/board"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: write FOLDER")
		os.Exit(2)
	}
	if err := board.Write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "write:", err)
		os.Exit(1)
	}
}
