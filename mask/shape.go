// SPDX-License-Identifier: Apache-2.0

package mask

import "strings"

// A shape is a secret that is known by how it begins.
type shape struct {
	prefix   string
	min, max int  // bytes after the prefix; max 0 means any number
	chars    set  // of which they are
	digit    bool // one of them is a digit, which words do not have
	keep     bool // the prefix is no part of the secret
}

// A set is a set of ASCII characters.
type set uint8

const (
	alnum set = iota + 1 // A-Z a-z 0-9
	upper                // A-Z 0-9
	word                 // alnum _ -
	token                // RFC 6750, section 2.1: alnum - . _ ~ + / =
)

func (s set) has(c byte) bool {
	isUpper, isDigit := 'A' <= c && c <= 'Z', '0' <= c && c <= '9'
	switch s {
	case upper:
		return isUpper || isDigit
	case alnum:
		return isUpper || isDigit || 'a' <= c && c <= 'z'
	case word:
		return alnum.has(c) || c == '_' || c == '-'
	case token:
		return word.has(c) || c == '.' || c == '~' || c == '+' || c == '/' || c == '='
	}
	return false
}

// shapes are as the services document or issue them in 2026. The lengths are lower
// bounds below what is issued, so that a longer key of next year is found too.
func shapes() [25]shape {
	return [...]shape{
		{prefix: "sk-", min: 20, chars: word, digit: true}, // OpenAI, Anthropic (sk-ant-), OpenRouter (sk-or-)
		{prefix: "Bearer ", min: 16, chars: token, digit: true, keep: true},
		{prefix: "bearer ", min: 16, chars: token, digit: true, keep: true},
		{prefix: "BEARER ", min: 16, chars: token, digit: true, keep: true},
		{prefix: "npm_", min: 30, chars: alnum},
		{prefix: "ghp_", min: 30, chars: alnum}, // GitHub: personal, OAuth, user, server, refresh
		{prefix: "gho_", min: 30, chars: alnum},
		{prefix: "ghu_", min: 30, chars: alnum},
		{prefix: "ghs_", min: 30, chars: token},
		{prefix: "ghr_", min: 30, chars: alnum},
		{prefix: "github_pat_", min: 40, chars: word},
		{prefix: "glpat-", min: 20, chars: word},
		{prefix: "AIza", min: 35, chars: word},               // Google
		{prefix: "gsk_", min: 20, chars: alnum},              // Groq
		{prefix: "xai-", min: 20, chars: word, digit: true},  // xAI
		{prefix: "hf_", min: 30, chars: alnum},               // Hugging Face
		{prefix: "xoxb-", min: 20, chars: word, digit: true}, // Slack
		{prefix: "xoxp-", min: 20, chars: word, digit: true},
		{prefix: "AKIA", min: 16, max: 16, chars: upper}, // AWS access key ids
		{prefix: "ASIA", min: 16, max: 16, chars: upper},
		{prefix: "sk_live_", min: 16, chars: alnum}, // Stripe
		{prefix: "rk_live_", min: 16, chars: alnum},
		{prefix: "pypi-", min: 40, chars: word},
		{prefix: "ya29.", min: 20, chars: word, digit: true}, // Google OAuth
		{prefix: "tvly-", min: 20, chars: word, digit: true},
	}
}

func findTokens(s string, spans []span) []span {
	for _, sh := range shapes() {
		for at := 0; ; {
			i := strings.Index(s[at:], sh.prefix)
			if i < 0 {
				break
			}
			from := at + i
			at = from + len(sh.prefix)
			to, digit := at, false
			for to < len(s) && sh.chars.has(s[to]) {
				digit = digit || '0' <= s[to] && s[to] <= '9'
				to++
			}
			n := to - at
			if n < sh.min || sh.max > 0 && n > sh.max || sh.digit && !digit || !startsWord(s, from) {
				continue
			}
			sp := span{anchor: from, from: from, to: to}
			if sh.keep {
				sp.from = at
			}
			spans = append(spans, sp)
			at = to
		}
	}
	return spans
}

// startsWord reports whether a word may start at i: nothing that could belong to it
// stands before. The letter of an escape, as in "\nsk-...", is no part of a word.
func startsWord(s string, i int) bool {
	if i == 0 || !word.has(s[i-1]) && s[i-1] != '+' {
		return true
	}
	if i >= 2 && s[i-2] == '\\' && strings.IndexByte("nrtbf", s[i-1]) >= 0 {
		return true
	}
	return i >= 6 && s[i-6] == '\\' && s[i-5] == 'u'
}

// How a private key begins and ends: RFC 7468, also the OpenSSH and PGP kinds.
const (
	pemBegin = "-----BEGIN "
	pemEnd   = "-----END "
	pemKey   = "PRIVATE KEY"
)

// findPEM masks a private key from its first to its last line. Of one whose end is
// missing, all is masked that could belong to it.
func findPEM(s string, spans []span) []span {
	for at := 0; ; {
		i := strings.Index(s[at:], pemBegin)
		if i < 0 {
			return spans
		}
		from := at + i
		at = from + len(pemBegin)
		end := at
		for end < len(s) && end-at < 40 && (upper.has(s[end]) || s[end] == ' ') {
			end++
		}
		k := strings.Index(s[at:end], pemKey)
		if k < 0 {
			continue
		}
		body := at + k + len(pemKey)
		to := body
		for to < len(s) && pemChar(s[to]) && !strings.HasPrefix(s[to:], pemEnd) {
			to++
		}
		if strings.HasPrefix(s[to:], pemEnd) {
			to += len(pemEnd)
			if e := strings.Index(s[to:min(len(s), to+60)], "-----"); e >= 0 {
				to += e + len("-----")
			}
		}
		spans = append(spans, span{from, from, to})
		at = to
	}
}

// pemChar is what may be in a key: base64, headers, white space and its escapes.
func pemChar(c byte) bool {
	return token.has(c) || c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\\' || c == ':' || c == ','
}

// findURLs masks the password of a URL, a token in place of its user, and the
// values of query parameters that carry a key.
func findURLs(s string, spans []span) []span {
	for at := 0; ; {
		i := strings.Index(s[at:], "://")
		if i < 0 {
			break
		}
		anchor := at + i
		at = anchor + len("://")
		end, colon := at, -1
		for end < len(s) && userChar(s[end]) {
			if s[end] == ':' && colon < 0 {
				colon = end
			}
			end++
		}
		if end == len(s) || s[end] != '@' {
			continue
		}
		from := at
		if colon >= 0 {
			from = colon + 1
		} else if end-at < 20 {
			continue // a user alone
		}
		if from < end && s[from:end] != Mask {
			spans = append(spans, span{anchor, from, end})
		}
		at = end
	}
	for _, mark := range []string{"?", "&"} {
		spans = findQuery(s, mark, spans)
	}
	return spans
}

func userChar(c byte) bool { return c > ' ' && c < 0x7f && strings.IndexByte("/?#@\"'<>`\\", c) < 0 }

func findQuery(s, mark string, spans []span) []span {
	for at := 0; ; {
		i := strings.Index(s[at:], mark)
		if i < 0 {
			return spans
		}
		anchor := at + i
		at = anchor + 1
		eq := at
		for eq < len(s) && eq-at < 32 && word.has(s[eq]) {
			eq++
		}
		if eq == len(s) || s[eq] != '=' || !secretParameter(s[at:eq]) {
			continue
		}
		from := eq + 1
		end := from
		for end < len(s) && userChar(s[end]) && s[end] != '&' {
			end++
		}
		if end-from >= MinLength && s[from:end] != Mask {
			spans = append(spans, span{anchor, from, end})
		}
		at = end
	}
}

func secretParameter(name string) bool {
	for _, p := range [...]string{
		"key", "api_key", "apikey", "api-key", "token", "access_token", "auth_token", "refresh_token", "id_token", "secret",
		"client_secret", "password", "passwd", "pwd", "sig", "signature", "x-amz-signature", "x-amz-security-token", "x-goog-signature",
	} {
		if strings.EqualFold(name, p) {
			return true
		}
	}
	return false
}
