// SPDX-License-Identifier: Apache-2.0

package constraint_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fiducial-dev/fiducial/kicad/constraint"
	"github.com/fiducial-dev/fiducial/kicad/docs"
)

// Whatever stands in the registry's place, the answer is the registry or a typed error that names the file, soon.
func TestLoad_Hostile(t *testing.T) {
	const good = `{"version": 1, "constraints": [{"key": "k", "text": "t", "source": "s"}]}`
	for name, c := range map[string]struct {
		text string
		want string // in the error; "" when it is read
	}{
		"CRLF":               {strings.ReplaceAll("{\n\"version\": 1,\n\"constraints\": [{\"key\": \"k\",\n\"text\": \"t\", \"source\": \"s\"}]\n}\n", "\n", "\r\n"), ""},
		"byte order mark":    {"\xef\xbb\xbf" + good, ""},
		"UTF-16":             {"\xff\xfe{\x00}\x00", "no UTF-8"},
		"Latin-1":            {strings.Replace(good, `"t"`, "\"caf\xe9\"", 1), "no UTF-8"},
		"empty":              {"", "empty"},
		"blank":              {" \n", "empty"},
		"null":               {"null", "version 0"},
		"a list":             {"[]", "mend it by hand"},
		"a word":             {"yes", "mend it by hand"},
		"merge markers":      {"<<<<<<< HEAD\n" + good, "mend it by hand"},
		"a newer version":    {`{"version": 2, "rules": 1}`, "use a newer fiducial"},
		"a version in words": {`{"version": "1"}`, "mend it by hand"},
		"no version":         {`{"constraints": []}`, "version 0"},
		"twice":              {`{"version":1,"constraints":[{"key":"k","text":"x","source":""},{"key":"k","text":"y","source":""}]}`, "the constraint k twice"},
		"twice but capitals": {`{"version":1,"constraints":[{"key":"k","text":"x","source":""},{"key":"K","text":"y","source":""}]}`, "k and K"},
		"a key twice":        {`{"version":1,"constraints":[],"constraints":[]}`, `"constraints" twice`},
		"a field twice":      {`{"version":1,"constraints":[{"key":"k","text":"x","text":"y","source":""}]}`, `"text" twice`},
		"an unknown field":   {`{"version":1,"constraints":[{"key":"k","text":"x","souce":""}]}`, "unknown field"},
		"something behind":   {good + "}", "more than one object"},
		"deep":               {strings.Repeat("[", 200000), "mend it by hand"},
		"a long key":         {`{"version":1,"constraints":[{"key":"` + strings.Repeat("k", 70000) + `","text":"x","source":""}]}`, "is no name"},
		"a NUL":              {`{"version":1,"constraints":[{"key":"k\u0000","text":"x","source":""}]}`, "is no name"},
		"too large":          {`{"version":1,"constraints":[]` + strings.Repeat(" ", constraint.MaxSize) + "}", "more than 16 MB"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := constraint.Load(fstest.MapFS{"docs/constraints.json": {Data: []byte(c.text)}}, "docs")
			if c.want == "" {
				if err != nil || len(r.Constraints) != 1 {
					t.Fatalf("got %v, %v", r, err)
				}
				return
			}
			e, ok := errors.AsType[*constraint.Error](err)
			if !ok || e.Kind != constraint.Malformed || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "docs/constraints.json") || r != nil {
				t.Errorf("got %.200v, %.200v, want %q", r, err, c.want)
			}
			if len(err.Error()) > 1000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

// Line ends and a byte order mark stay when the registry is written again.
func TestBytesLike(t *testing.T) {
	for _, old := range []string{"\xef\xbb\xbf{\r\n\"version\": 1}\r\n", "{\r\n\"version\": 1}", "\xef\xbb\xbf{\n\"version\": 1}\n", "{\"version\": 1}", ""} {
		r := &constraint.Registry{Constraints: []constraint.Constraint{{Key: "k", Text: "a\nb"}}}
		got := r.BytesLike([]byte(old))
		crlf, lines := strings.Count(string(got), "\r\n"), strings.Count(string(got), "\n")
		if strings.Contains(old, "\r\n") && crlf != lines || !strings.Contains(old, "\r\n") && crlf > 0 || strings.HasPrefix(old, "\xef") != strings.HasPrefix(string(got), "\xef") {
			t.Errorf("%q: %q", old, got)
		}
		if again, err := constraint.Read("c.json", got); err != nil || again.Constraints[0].Text != "a\nb" {
			t.Errorf("%q: read again: %v, %v", old, again, err)
		}
	}
}

// Many constraints are read, recorded and checked without a cost that grows with their square.
func TestLarge(t *testing.T) {
	var text strings.Builder
	text.WriteString(`{"version":1,"constraints":[`)
	const n = 20000
	for i := range n {
		if i > 0 {
			text.WriteString(",")
		}
		fmt.Fprintf(&text, `{"key":"k%d","text":"t","source":"s","limits":[{"kind":"count","parts":["R*"],"max":"1"}]}`, i)
	}
	text.WriteString("]}")
	r, err := constraint.Read("c.json", []byte(text.String()))
	if err != nil || len(r.Constraints) != n {
		t.Fatal(err)
	}
	if got := constraint.Check(r, &docs.Design{}, nil); len(got) != n {
		t.Errorf("%d results", len(got))
	}
}
