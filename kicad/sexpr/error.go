// SPDX-License-Identifier: Apache-2.0

package sexpr

import (
	"cmp"
	"fmt"
	"slices"
)

// An ErrorKind says what is wrong with a text.
type ErrorKind uint8

// The kinds. kicad-cli 9.0.8 loads files with ExtraClose, Trailing, SecondRoot, NUL and InvalidUTF8 without a word
// and drops a part of them; it refuses the others.
const (
	Unclosed           ErrorKind = iota // a list is never closed
	ExtraClose                          // a closing bracket too many
	UnterminatedString                  // a string reaches the end of its line or file
	Trailing                            // words behind the list
	SecondRoot                          // another list behind the list
	NotAList                            // something stands before the first bracket
	Empty                               // nothing but white space
	NUL                                 // a byte 0x00
	InvalidUTF8                         // a byte that is no UTF-8
	ByteOrderMark                       // EF BB BF in front
	UTF16                               // a UTF-16 byte order mark in front
	TooLarge                            // more than 2 GiB
	kinds
)

var kindNames = [kinds]string{
	"unclosed-bracket", "extra-bracket", "unterminated-string", "trailing-content", "second-root", "not-a-list",
	"empty", "nul-byte", "invalid-utf8", "byte-order-mark", "utf16", "too-large",
}

// String returns a short stable name, for instance "extra-bracket".
func (k ErrorKind) String() string {
	if k >= kinds {
		return fmt.Sprintf("ErrorKind(%d)", uint8(k))
	}
	return kindNames[k]
}

// An Error is one thing wrong with the text, and where.
type Error struct {
	Kind   ErrorKind
	Offset int // in bytes from 0
	Line   int // from 1
	Column int // in bytes from 1
	Count  int // how many lists an Unclosed error stands for, else 1
	Detail string
}

func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d (byte %d): %s", e.Line, e.Column, e.Offset, e.Detail)
}

// sorted returns the errors in the order of the text, with their lines.
func (p *parser) sorted() []*Error {
	slices.SortStableFunc(p.errs, func(a, b *Error) int { return cmp.Compare(a.Offset, b.Offset) })
	for _, e := range p.errs {
		e.Line, e.Column = p.doc.Position(e.Offset)
	}
	return p.errs
}
