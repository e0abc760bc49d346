// SPDX-License-Identifier: Apache-2.0

// Package prompt holds what the adapters' writers of request bodies share: who
// writes which message, and what of a message can be sent at all.
package prompt

import (
	"fmt"
	"strings"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
)

// A Writer writes messages in one format.
type Writer interface {
	// User writes what a person or the program said.
	User(m llm.Message)
	// Assistant writes a reply of the model, its calls included.
	Assistant(m llm.Message)
	// Results writes what calls returned.
	Results(m llm.Message)
}

// Write has w write all messages, as the elements of one array under a key.
func Write(j *wire.JSON, key string, w Writer, messages []llm.Message) {
	j.Key(key)
	j.Open('[')
	Each(w, messages)
	j.Close(']')
}

// Each has w write all messages.
func Each(w Writer, messages []llm.Message) {
	for _, m := range messages {
		switch m.Role {
		case llm.RoleUser:
			w.User(m)
		case llm.RoleAssistant:
			w.Assistant(m)
		case llm.RoleTool:
			w.Results(m)
		}
	}
}

// UserText is what the model reads of a user message's part.
func UserText(p llm.Part) string {
	switch p := p.(type) {
	case llm.Text:
		return p.Text
	case llm.System:
		return p.Text
	case llm.Image, llm.Thinking, llm.Call, llm.Result:
	}
	return ""
}

// Blank reports whether a text has no words: some servers refuse such a text, and no
// model needs it.
func Blank(text string) bool { return strings.TrimSpace(text) == "" }

// A Content is what of a user message can be sent, in order: text that is not
// blank, and pictures where the model takes them. A note stands for pictures that it
// does not take.
type Content struct {
	Texts  int
	Images int
	parts  []llm.Part
}

// ContentOf is the content of a user message.
func ContentOf(m llm.Message, blind bool) Content {
	var c Content
	leftOut := 0
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.Image:
			if blind {
				leftOut++
				continue
			}
			c.Images++
			c.parts = append(c.parts, p)
		default:
			if t := UserText(p); !Blank(t) {
				c.Texts++
				c.parts = append(c.parts, llm.Text{Text: t})
			}
		}
	}
	if leftOut > 0 {
		c.Texts++
		c.parts = append(c.parts, llm.Text{Text: LeftOut(leftOut)})
	}
	return c
}

// Empty reports whether there is nothing to send. Servers refuse messages without
// content.
func (c Content) Empty() bool { return len(c.parts) == 0 }

// Each hands each part to the function for its kind.
func (c Content) Each(text func(string), image func(llm.Image)) {
	for _, p := range c.parts {
		switch p := p.(type) {
		case llm.Text:
			text(p.Text)
		case llm.Image:
			image(p)
		default: // there are no others
		}
	}
}

// Text is all texts with an empty line between them.
func (c Content) Text() string {
	var texts []string
	c.Each(func(t string) { texts = append(texts, t) }, func(llm.Image) {})
	return strings.Join(texts, "\n\n")
}

// LeftOut tells a model of pictures that it does not take.
func LeftOut(images int) string {
	return fmt.Sprintf("(images left out, since this model takes none: %d)", images)
}

// Stops writes the stop sequences under a key. Blank ones, which servers refuse, are
// left out.
func Stops(j *wire.JSON, key string, words []string) {
	begun := false
	for _, w := range words {
		if Blank(w) {
			continue
		}
		if !begun {
			begun = true
			j.Key(key)
			j.Open('[')
		}
		j.String(w)
	}
	if begun {
		j.Close(']')
	}
}
