// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"net/url"
	"regexp"
	"strings"
)

// Masked stands where a secret stood.
const Masked = "[masked]"

// A Mask removes secrets from text that is to be shown: the given ones, in plain
// and in URL form, and the query and user part of every URL (E-191, E-260). The
// zero value masks URLs only.
type Mask struct{ secrets []string }

// NewMask returns a mask for secrets. Those that are shorter than 4 bytes are left
// out: they are no keys, and would tear words apart.
func NewMask(secrets ...string) Mask {
	var m Mask
	for _, s := range secrets {
		if len(s) < 4 {
			continue
		}
		m.secrets = append(m.secrets, s)
		if q := url.QueryEscape(s); q != s {
			m.secrets = append(m.secrets, q)
		}
	}
	return m
}

var (
	urlQuery = regexp.MustCompile(`(https?://[^\s"'?#<>]*)[?#][^\s"'<>]*`)
	urlUser  = regexp.MustCompile(`(https?://)[^\s"'/@<>]*@`)
)

// Text is text without secrets.
func (m Mask) Text(text string) string {
	for _, s := range m.secrets {
		text = strings.ReplaceAll(text, s, Masked)
	}
	if !strings.Contains(text, "://") {
		return text
	}
	text = urlQuery.ReplaceAllString(text, "$1?"+Masked)
	return urlUser.ReplaceAllString(text, "$1"+Masked+"@")
}
