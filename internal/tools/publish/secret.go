// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// A secret is what looks like one in a file.
type secret struct {
	kind string
	line int
}

// secrets finds keys, tokens and passwords in text, in the order of [shapes].
func secrets(text []byte) []secret {
	var found []secret
	for _, s := range shapes {
		for _, at := range s.re.FindAllSubmatchIndex(text, -1) {
			start, end := at[2], at[3]
			if s.real(text[start:end]) {
				found = append(found, secret{s.kind, 1 + bytes.Count(text[:start], []byte("\n"))})
			}
		}
	}
	return found
}

// A shape is one kind of secret.
type shape struct {
	kind string
	re   *regexp.Regexp // its first group is the secret
	real func(secret []byte) bool
}

// shapes are the kinds of secret that are looked for, as the services' documents and
// https://docs.github.com/en/code-security/secret-scanning/introduction/supported-secret-scanning-patterns
// describe them.
var shapes = []shape{
	keyShape("a key of a model provider", `sk-[A-Za-z0-9_-]{20,}|gsk_[A-Za-z0-9]{40,}|xai-[A-Za-z0-9]{40,}|pplx-[A-Za-z0-9]{40,}`),
	keyShape("a token of Hugging Face", `hf_[A-Za-z0-9]{30,}`),
	keyShape("a key of Google", `AIza[A-Za-z0-9_-]{35}`),
	keyShape("a token of GitHub", `gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,}`),
	keyShape("a token of GitLab", `gl(?:pat|ptt|rt|dt|cbt)-[A-Za-z0-9_-]{20,}`),
	keyShape("a token of npm", `npm_[A-Za-z0-9]{36}`),
	keyShape("a key of Stripe", `[rs]k_(?:live|test)_[A-Za-z0-9]{20,}`),
	keyShape("a key of AWS", `(?:AKIA|ASIA)[A-Z0-9]{16}`),
	keyShape("a token of Slack", `xox[abeoprs]-[A-Za-z0-9-]{20,}`),
	keyShape("a signed web token", `eyJ[A-Za-z0-9_-]{15,}\.eyJ[A-Za-z0-9_-]{15,}\.[A-Za-z0-9_-]{20,}`),
	keyShape("a bearer token", `(?i:bearer) [A-Za-z0-9._~+/-]{32,}`),
	{"a private key", regexp.MustCompile(privateKey), func([]byte) bool { return true }},
	{"a URL with a password", regexp.MustCompile(`\b([a-z][a-z0-9+.-]*://[^\s/:@"'` + "`" + `]*:[^\s/@"'` + "`" + `]+@[A-Za-z0-9.-]+)`), passwordURL},
}

// keyShape is the shape of a key that begins with what only its service's keys begin
// with, and looks random. It may stand after anything but a letter or a digit; an
// escape such as \n, \u003d or %3D ends in one and is as good as a space, since that
// is how a key stands in a recorded request.
func keyShape(kind, pattern string) shape {
	before := `(?:^|[^A-Za-z0-9]|\\[abfnrtv]|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|%[0-9A-Fa-f]{2})`
	return shape{kind, regexp.MustCompile(before + `(` + pattern + `)`), looksRandom}
}

// privateKey is a block whose header says that it holds one, whatever the kind:
// base64 follows, behind headers such as Proc-Type (RFC 1421, section 4.6), line
// ends that are escaped, and what joins the lines of a string in source code. A
// header alone, or before an ellipsis, is talk of keys. PuTTY and age have formats of
// their own.
const privateKey = `(-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----` +
	`(?:\\+[nrt]|\\u000[aAdD]|%0[aAdD]|[\s"'` + "`" + `+,|>#*]|[A-Za-z][A-Za-z-]*: ?[^\n\\]*)*?[A-Za-z0-9+/]{20,}` +
	`|Private-Lines: [0-9]+\s+[A-Za-z0-9+/]{20,}` +
	`|AGE-SECRET-KEY-1[A-Z0-9]{50,})`

// looksRandom tells a key from words joined by hyphens and from a placeholder: a
// long piece of it has letters and digits, and many different ones, and none of it
// counts up, as 0123456789abcdef does.
func looksRandom(s []byte) bool {
	for piece := range bytes.FieldsFuncSeq(s, func(r rune) bool { return strings.ContainsRune("-_. ", r) }) {
		different := map[byte]bool{}
		for _, b := range piece {
			different[b] = true
		}
		if len(different) >= 10 && bytes.ContainsAny(piece, "0123456789") && bytes.ContainsAny(bytes.ToLower(piece), "abcdefghijklmnopqrstuvwxyz") && !countsUp(piece) {
			return true
		}
	}
	return false
}

// countsUp reports whether six characters in a row follow upon each other, which
// one in ten million random keys has.
func countsUp(s []byte) bool {
	run := 1
	for i := 1; i < len(s) && run < 6; i++ {
		if s[i] == s[i-1]+1 {
			run++
		} else {
			run = 1
		}
	}
	return run >= 6
}

// passwordURL tells a URL that holds somebody's password from an example of one: of
// an example the host is nobody's (RFC 2606, section 2) or the reader's own machine,
// or the password is a word that stands for one, has marks such as <, $ and * for
// what is to be filled in, or has fewer than five characters.
func passwordURL(s []byte) bool {
	_, rest, _ := strings.Cut(string(s), "://")
	user, host, _ := strings.Cut(rest, "@")
	_, password, _ := strings.Cut(user, ":")
	labels := strings.Split(strings.ToLower(host), ".")
	if slices.ContainsFunc(labels, func(l string) bool {
		return slices.Contains([]string{"example", "test", "invalid", "localhost"}, l)
	}) || strings.HasPrefix(host, "127.") {
		return false
	}
	if plain, err := url.PathUnescape(password); err == nil {
		password = plain
	}
	if len(password) < 5 || strings.ContainsAny(password, "<>${}*\\[]()|") || strings.Contains(password, "...") || strings.Contains(password, "%") {
		return false
	}
	return !slices.Contains([]string{"passwd", "password", "secret", "s3cret", "postgres", "changeme", "xxxxx", "token"}, strings.ToLower(password))
}
