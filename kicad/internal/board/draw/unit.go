// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// An nm is a length in nanometres, the unit of KiCad's board editor. Whole
// numbers keep the output the same on every machine.
type nm int

const perMM = 1_000_000

// grid is the 50 mil step of KiCad's schematic editor.
const grid nm = 1_270_000

// mm writes a length in millimetres as KiCad does, without trailing zeros.
func (v nm) mm() string {
	s := fmt.Sprintf("%d.%06d", abs(v)/perMM, abs(v)%perMM)
	s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	if v < 0 {
		return "-" + s
	}
	return s
}

func abs(v nm) nm { return max(v, -v) }

// parseMM reads a length in millimetres.
func parseMM(s string) (nm, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, fmt.Errorf("length %q: %w", s, err)
	}
	return nm(math.Round(f * perMM)), nil
}

// A point is a place on a sheet or a board, y downwards.
type point struct{ x, y nm }

// at is a place on the schematic in grid steps.
func at(x, y int) point { return point{nm(x) * grid, nm(y) * grid} }

// mm is a place on the board in millimetres.
func mm(x, y float64) point {
	return point{nm(math.Round(x * perMM)), nm(math.Round(y * perMM))}
}

func (p point) add(q point) point { return point{p.x + q.x, p.y + q.y} }

// turn rotates counter-clockwise as seen on the screen, by a multiple of 90
// degrees.
func (p point) turn(degrees int) point {
	for range ((degrees%360 + 360) % 360) / 90 {
		p = point{p.y, -p.x}
	}
	return p
}

func (p point) node(head string) node { return list(head, word(p.x.mm()), word(p.y.mm())) }

// place is an (at x y angle).
func place(p point, degrees int) node {
	return list("at", word(p.x.mm()), word(p.y.mm()), word(strconv.Itoa(degrees)))
}
