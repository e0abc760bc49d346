// SPDX-License-Identifier: Apache-2.0

// Package boardcases holds tests alone: they check our readers and kicad-cli against the cases of a folder that the
// environment variable FIDUCIAL_BOARD_CASES names, without which they are skipped.
//
// Each folder with an oracle.json is a case. The file maps a design file's name to what kicad-cli says of it:
// netlist or pos (rc, stdout, stderr of the probe), nets (name to sorted REF.PIN), inventory (ref, value, footprint,
// dnp, xbom, xboard), erc and drc (rc, counts by type:severity).
package boardcases
