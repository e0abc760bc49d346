// SPDX-License-Identifier: Apache-2.0

// Package boardcases holds tests alone: they check our readers and kicad-cli against cases, those that package drawn
// draws and those of a folder that the environment variable FIDUCIAL_BOARD_CASES names.
//
// Each folder is a case and has an oracle.json, which maps a design file's name to what kicad-cli says of it: netlist or
// pos (rc, stdout, stderr of the probe), nets (name to sorted REF.PIN), inventory (ref, value, footprint, dnp, xbom,
// xboard), erc and drc (rc, counts by type:severity, for ERC the sheets). A field that the runner does not know, a file
// of another kind, and a folder without an oracle.json fail: nothing passes unread.
//
// What kicad-cli says of the drawn cases is in testdata. After a change of a case, or for another kicad-cli:
//
//	go run ./internal/boardcases/cmd/oracle -o internal/boardcases/testdata -only NAME
//
// With -all the cases' files are written as well, which makes a folder for FIDUCIAL_BOARD_CASES.
package boardcases
