// SPDX-License-Identifier: Apache-2.0

// Package docs keeps the documents of a board in step with its design: bills of materials, pinouts and whatever else
// makes claims about parts and nets in tables of markdown.
//
// What a table claims is compared with what kicad-cli says of the design ([Drift]), as an engineer would compare it:
// 4k7 is 4.7 kOhm, /OUT is OUT while there is no other OUT, R1-R4 are four resistors. What differs can be repaired by
// edits of byte ranges ([Fix]) that leave every other byte alone. The first set of documents is made from the design
// itself ([Generate], [PlanInit]).
//
// # Files
//
// A project's documents are the .md files of its docs folder. What belongs to which project, and which documents were
// generated, stands in .fiducial.json in the project's folder ([ConfigName]), which is to be committed.
//
// BOM.md is the bill of materials: every part that belongs into one must be in a table of it. Where there is none,
// documents such as BOM-connectors.md must list all of them together. A document with the line
//
//	<!-- fiducial:pinout J U -->
//
// lists every pin of every part whose reference begins with one of these prefixes. All other tables may be incomplete:
// only what they say is compared. A firmware's header of pins, such as pins.h ([IsHeader]), is a document too: a name in
// it that is a net must stand for a pin on that net. It is compared and never repaired. CHANGELOG.md and DECISIONS.md tell
// what was, and are compared with nothing.
package docs
