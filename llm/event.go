// SPDX-License-Identifier: Apache-2.0

package llm

// An Event is one thing that a stream says. The set is closed.
//
// A block is opened by one [BlockStart], grows by [BlockDelta] and is closed by
// one [BlockStop]. Blocks are told apart by Index and may interleave; their order
// in the reply is the order of their indexes.
//
//sumtype:decl
type Event interface{ event() }

// BlockKind is what a block becomes.
type BlockKind uint8

// The kinds of block.
const (
	BlockText BlockKind = iota
	BlockThinking
	BlockCall
)

type (
	// BlockStart opens a block. ID and Name are set for calls; an ID that the
	// provider does not give stays empty and is made up by package collect.
	BlockStart struct {
		Index int
		Kind  BlockKind
		ID    string
		Name  string
	}

	// BlockDelta adds text, thinking or argument text to an open block.
	BlockDelta struct {
		Index int
		Text  string
	}

	// BlockStop closes a block.
	BlockStop struct {
		Index  int
		Opaque Opaque
	}

	// UsageReport tells what the request has cost so far. Reports of one reply
	// are merged, see [Usage.Merge].
	UsageReport struct{ Usage Usage }

	// Finish says that the reply is complete. It is the last event.
	Finish struct{ Stop StopReason }

	// Unhandled is a wire event that the adapter has no use for (E-160). Preview
	// is its start, at most 512 bytes cut at a character; Size is all of it.
	Unhandled struct {
		Vendor  string
		Type    string
		Preview string
		Size    int
	}

	// Failover says that another client goes on with the same request.
	Failover struct {
		From, To Model
		Cause    error
	}
)

func (BlockStart) event()  {}
func (BlockDelta) event()  {}
func (BlockStop) event()   {}
func (UsageReport) event() {}
func (Finish) event()      {}
func (Unhandled) event()   {}
func (Failover) event()    {}
