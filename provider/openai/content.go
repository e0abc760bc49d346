// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"encoding/base64"
	"fmt"

	"github.com/fiducial-dev/fiducial/llm"
)

// userText is what the model reads of a user message's part.
func userText(p llm.Part) string {
	switch p := p.(type) {
	case llm.Text:
		return p.Text
	case llm.System:
		return p.Text
	case llm.Image, llm.Thinking, llm.Call, llm.Result:
	}
	return ""
}

func dataURL(img llm.Image) string {
	return "data:" + img.Media + ";base64," + base64.StdEncoding.EncodeToString(img.Data)
}

func leftOut(images int) string {
	return fmt.Sprintf("(images left out, since this model takes none: %d)", images)
}

func lines(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n" + b
}
