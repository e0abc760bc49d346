// SPDX-License-Identifier: Apache-2.0

package toolgen

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSnake(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"Read", "read"},
		{"ReadFile", "read_file"},
		{"HTTPServer", "http_server"},
		{"ServeHTTP", "serve_http"},
		{"ReadURL2", "read_url2"},
		{"ID3Tag", "id3_tag"},
		{"X", "x"},
		{"XY", "xy"},
		{"ReadAFile", "read_a_file"},
		{"Read_All", "read_all"},
		{"Read__all", "read_all"},
		{"_Read", "_read"},
		{"readAll", "read_all"},
		{"Größe", "größe"},
		{"", ""},
	} {
		if got := snake(tt.name); got != tt.want {
			t.Errorf("snake(%q) = %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestParseDirective(t *testing.T) {
	for _, tt := range []struct {
		line string
		want directive
	}{
		{"//fiducial:tools", toolsDirective{}},
		{"//fiducial:tools \t", toolsDirective{}},
		{"//fiducial:tool", toolDirective{}},
		{"//fiducial:tool exclusive name=Read-file_2  readonly\tidempotent", toolDirective{"Read-file_2", true, true, true, true}},
		{"//fiducial:arg path  where it is, \"quoted\" ", argDirective{name: "path", text: `where it is, "quoted"`, nameCol: 15}},
	} {
		got, err := parseDirective(tt.line)
		if len(err) > 0 || got != tt.want {
			t.Errorf("%s: got %+v, %v; want %+v", tt.line, got, err, tt.want)
		}
	}
}

// TestLookalikes: what looks like a directive is one that somebody meant; sentences are
// none.
func TestLookalikes(t *testing.T) {
	for _, tt := range []struct{ comment, want string }{
		{"// fiducial:tool redonly", "//fiducial:tool"},
		{"// fiducial:tool name=9", "//fiducial:tool"},
		{"// fiducial:tols", "//fiducial:tools"},
		{"// fiducial:tol", "//fiducial:tool"},
		{"// fiducial:args path where it is", "//fiducial:arg"},
		{"// fiducial : tool", "//fiducial:tool"},
		{"//Fiducial:Tool", "//fiducial:tool"},
		{"//FIDUCIAL:TOOLS", "//fiducial:tools"},
		{"//fiducial :tool", "//fiducial:tool"},
		{"//fiducial: tool readonly", "//fiducial:tool"},
		{"//fidcial:tool", "//fiducial:tool"},
		{"//fiduical:tool", "//fiducial:tool"},
		{"//Fiducial:readonly", "a directive"},
		{"/*fiducial:tool*/", "//fiducial:tool"},
		{"/* fiducial:tool readonly */", "//fiducial:tool"},
		{"/*\n * Read reads.\n *\n * fiducial:tool readonly\n */", "//fiducial:tool"},
		{"//fiduci\u0430l:tool", "//fiducial:tool"},
		{"//fiducial\uff1atool", "//fiducial:tool"},
		{"//\u200bfiducial:tool", "//fiducial:tool"},
		{"//\uff46\uff49\uff44\uff55\uff43\uff49\uff41\uff4c:tool", "//fiducial:tool"},

		{"// fiducial:tool is prose here, and no directive.", ""},
		{"// fiducial:tools are what a model calls.", ""},
		{"// fiducial:tool.", ""},
		{"// fiducial: the engine and its tools", ""},
		{"// //fiducial:tool readonly", ""},
		{"//	//fiducial:tool readonly", ""},
		{"// Fiducial is a library: tool calls are checked.", ""},
		{"//Fiducial: makes tools", ""},
		{"// official:tool", ""},
		{"//go:generate tool", ""},
		{"//nolint:errcheck", ""},
		{"//", ""},
		{"/**/", ""},
		{"// : tool", ""},
	} {
		got := ""
		for _, l := range lookalikes(tt.comment) {
			got += l.meant
		}
		if got != tt.want {
			t.Errorf("%q is taken for %q, want %q", tt.comment, got, tt.want)
		}
	}
}

func TestFieldName(t *testing.T) {
	for _, tt := range []struct{ param, want string }{
		{"path", "Path"}, {"maxLines", "MaxLines"}, {"max_lines", "MaxLines"}, {"_path", "Path"}, {"_1", "Arg1"}, {"__", "Arg"},
	} {
		if got := fieldName(tt.param); got != tt.want {
			t.Errorf("fieldName(%q) = %q, want %q", tt.param, got, tt.want)
		}
	}
}

// FuzzDirective: no comment makes the parser panic; what it takes is what the
// rules allow, and what it refuses it points at.
func FuzzDirective(f *testing.F) {
	for _, s := range []string{
		"", "tools", "tool", "tool name=a readonly", "arg path text", "arg path", "arg", "tool name=", "tool =", "tools x", "tööl", " tool",
		"arg \u00a0 x", "tool name=a name=b", "arg \xff x",
	} {
		f.Add(s)
	}
	option := regexp.MustCompile(`^(name=[a-zA-Z_][a-zA-Z0-9_-]*|readonly|idempotent|exclusive)$`)
	f.Fuzz(func(t *testing.T, rest string) {
		line := prefix + rest
		lookalikes("// " + rest)
		lookalikes("/*" + rest + "*/")
		d, wrong := parseDirective(line)
		for _, e := range wrong {
			if e.col < 0 || e.col > len(line) || e.message == "" || len(e.message) > 1000 {
				t.Errorf("%q: column %d of %d, message %q", line, e.col, len(line), e.message)
			}
		}
		if len(wrong) > 0 {
			return
		}
		words := strings.Fields(line)
		switch d := d.(type) {
		case toolsDirective:
			if len(words) != 1 {
				t.Errorf("%q was taken", line)
			}
		case toolDirective:
			for _, w := range words[1:] {
				if !option.MatchString(w) {
					t.Errorf("%q was taken with %q", line, w)
				}
			}
		case argDirective:
			if utf8.ValidString(line) && (d.name != words[1] || line[d.nameCol:d.nameCol+len(d.name)] != d.name || strings.Fields(d.text)[0] != words[2]) {
				t.Errorf("%q gave %+v", line, d)
			}
		}
		if !isSpaced("// " + strings.TrimPrefix(line, "//")) {
			t.Errorf("%q with a space is not noticed", line)
		}
	})
}
