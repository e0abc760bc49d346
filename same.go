// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"bytes"
	"slices"

	"github.com/fiducial-dev/fiducial/llm"
)

// Whether two things hold the same. Texts cannot be written to, so that while they are
// the same ones they are not read; lists and data are compared by what they hold. What is
// stored is compared by digest instead.

func equalMessages(a, b []llm.Message) bool { return slices.EqualFunc(a, b, equalMessage) }

func equalMessage(a, b llm.Message) bool {
	return a.Role == b.Role && a.Stop == b.Stop && slices.EqualFunc(a.Parts, b.Parts, samePart)
}

// sameMessage compares without looking into parts: the same message has the same
// array of parts.
func sameMessage(a, b llm.Message) bool {
	return a.Role == b.Role && a.Stop == b.Stop && len(a.Parts) == len(b.Parts) &&
		(len(a.Parts) == 0 || &a.Parts[0] == &b.Parts[0])
}

func sameTools(a, b []llm.Tool) bool {
	if len(a) != len(b) || len(a) > 0 && &a[0] == &b[0] {
		return len(a) == len(b)
	}
	return slices.EqualFunc(a, b, func(x, y llm.Tool) bool {
		return x.Name == y.Name && x.Description == y.Description && string(x.Schema) == string(y.Schema)
	})
}

func samePart(a, b llm.Part) bool {
	switch a := a.(type) {
	case llm.Text:
		b, ok := b.(llm.Text)
		return ok && a.Text == b.Text && sameOpaque(a.Opaque, b.Opaque)
	case llm.Thinking:
		b, ok := b.(llm.Thinking)
		return ok && a.Text == b.Text && sameOpaque(a.Opaque, b.Opaque)
	case llm.Call:
		b, ok := b.(llm.Call)
		return ok && a.ID == b.ID && a.Name == b.Name && a.Args == b.Args && sameOpaque(a.Opaque, b.Opaque)
	case llm.System:
		b, ok := b.(llm.System)
		return ok && sameNote(a, b)
	case llm.Image:
		b, ok := b.(llm.Image)
		return ok && sameImage(a, b)
	case llm.Result:
		b, ok := b.(llm.Result)
		return ok && a.CallID == b.CallID && a.Name == b.Name && a.Status == b.Status && a.Summary == b.Summary && a.Content == b.Content &&
			slices.EqualFunc(a.Images, b.Images, sameImage) && slices.EqualFunc(a.Notes, b.Notes, sameNote)
	}
	return a == nil && b == nil
}

func sameOpaque(a, b llm.Opaque) bool { return a.Vendor == b.Vendor && bytes.Equal(a.Data, b.Data) }

func sameImage(a, b llm.Image) bool { return a.Media == b.Media && bytes.Equal(a.Data, b.Data) }

func sameNote(a, b llm.System) bool {
	return a.Kind == b.Kind && a.Text == b.Text && bytes.Equal(a.Data, b.Data)
}
