// SPDX-License-Identifier: Apache-2.0

// Package agent is the board agent's side of a run: the tools over a KiCad
// project, what the model is told of it, and the gates that kicad-cli keeps.
//
// Nothing it says of a design comes from guessing: what loads, what is connected
// and what is found is kicad-cli's word. An edit that would break a file that
// loaded before is taken back byte for byte.
package agent
