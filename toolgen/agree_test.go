// SPDX-License-Identifier: Apache-2.0

package toolgen_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/toolgen"
)

// typeCases are types of a parameter, with what they need declared. why is a part of what
// both the generator and tool.New say when they refuse it; empty: both give one schema.
var typeCases = []struct{ name, decl, typ, why string }{
	{"bool", "", "bool", ""},
	{"string", "", "string", ""},
	{"ints", "", "struct{ A int; B int8; C int16; D int32; E int64 }", ""},
	{"uints", "", "struct{ A uint; B uint8; C uint16; D uint32; E uint64 }", ""},
	{"byte and rune", "", "struct{ A byte; B rune }", ""},
	{"floats", "", "struct{ A float32; B float64 }", ""},
	{"named kinds", "type (num int8; text string; yes bool)", "struct{ A num; B text; C yes }", ""},
	{"any", "", "any", ""},
	{"pointer to any", "", "*any", ""},
	{"time", "", "time.Time", ""},
	{"maybe time", "", "*time.Time", ""},
	{"raw", "", "json.RawMessage", ""},
	{"maybe raw", "", "*json.RawMessage", ""},
	{"number", "", "json.Number", ""},
	{"numbers", "", "struct{ A *json.Number; B []json.Number; C map[string]json.Number; D []*json.Number }", ""},
	{"bytes", "", "[]byte", ""},
	{"named bytes", "type blob []byte", "struct{ A blob; B *blob; C [][]byte }", ""},
	{"array of bytes", "", "[4]byte", ""},
	{"text reader", "", "netip.Addr", ""},
	{"text reader of bytes", "", "net.IP", ""},
	{"text readers", "", "struct{ A *netip.Addr; B []netip.Addr; C map[netip.Addr]int; D big.Float }", ""},
	{"slices", "", "[][]*int", ""},
	{"maybe a slice", "", "*[]string", ""},
	{"array", "", "[2][3]float64", ""},
	{"map", "", "map[string]map[string][]int", ""},
	{"map with named keys", "type key string", "*map[key]any", ""},
	{"empty struct", "", "struct{}", ""},
	{"unexported type", "type hidden struct{ A int; b int }", "hidden", ""},
	{"optional fields", "", "struct{ A *int; B int `json:\"b,omitempty\"`; C *int `json:\"c,omitzero\"`; D int `json:\"-\"` }", ""},
	{"described field", "", "struct{ A int `json:\"a\" jsonschema:\"how many, a=b\"` }", ""},
	{"generic", "type box[T any] struct{ V T; N *T }", "box[box[string]]", ""},
	{"alias", "type same = struct{ A int }", "same", ""},
	{"embedded", "type Base struct{ A int; B string }; type base struct{ C int }", "struct{ Base; base; D int }", ""},
	{"embedded pointer", "type Lent struct{ A int }", "struct{ *Lent; B int }", ""},
	{"embedded under a name", "type named struct{ A int }; type Named2 struct{ B int }", "struct{ named `json:\"n\"`; Named2 `json:\"m\"` }", ""},
	{"embedded kind", "type Count int; type count int", "struct{ Count; count }", ""},
	{"shadowed", "type Below struct{ A int; B int }", "struct{ Below; A string }", ""},
	{"tagged before plain", "type L struct{ X int `json:\"N\"` }; type R struct{ N string }", "struct{ L; R }", ""},
	{"names that differ by case", "", "struct{ A int `json:\"a\"`; B int `json:\"A\"` }", ""},

	{"pointer to pointer", "", "**int", "**int is a pointer to a pointer, and JSON has one null: take *int"},
	{"slice of those", "", "[]**string", "**string is a pointer to a pointer, and JSON has one null: take *string"},
	{"named pointer", "type ptr *int", "ptr", "JSON has no form for type ptr"},
	{"channel", "", "chan int", "JSON has no form for type chan int"},
	{"function", "", "struct{ F func() }", "JSON has no form for type func()"},
	{"complex", "", "complex128", "JSON has no form for type complex128"},
	{"uintptr", "", "uintptr", "JSON has no form for type uintptr"},
	{"interface", "", "fmt.Stringer", "fmt.Stringer is an interface, and JSON does not say which type to make"},
	{"error", "", "error", "error is an interface, and JSON does not say which type to make"},
	{"keys", "", "map[int]string", "map[int]string has keys that are no strings: take map[string]string"},
	{"keys of any", "", "map[any]bool", "has keys that are no strings: take map[string]bool"},
	{"duration", "", "*time.Duration", "a time.Duration would be a number of nanoseconds"},
	{"recursive", "type node struct{ Next *node }", "node", "type node contains itself"},
	{"recursive list", "type nodes []nodes", "nodes", "type nodes contains itself"},
	{"recursive map", "type tree map[string]tree", "tree", "type tree contains itself"},
	{"recursive by embedding", "type Loop struct{ *Loop; N int }", "Loop", "type Loop contains itself"},
	{"JSON reader", "", "big.Int", "big.Int reads JSON in its own way, so its schema is unknown; take a json.RawMessage"},
	{"JSON reader in a list", "", "[]slog.Level", "slog.Level reads JSON in its own way, so its schema is unknown"},
	{"lent JSON reader", "", "struct{ time.Time; N int }", "reads JSON in its own way, so its schema is unknown"},
	{"quoted", "", "struct{ A int `json:\",string\"` }", "the json tag's option string is not supported: drop the option"},
	{"bad name", "", "struct{ A int `json:\"$top\"` }", "bad name \"$top\": models take names of 1 to 64 ASCII letters, digits, _, . and -"},
	{"one name twice", "", "struct{ A int `json:\"x\"`; B int `json:\"x\"` }", "several fields are called \"x\""},
	{"one name lent twice", "type P struct{ N int }; type Q struct{ N int }", "struct{ P; Q }", "several fields are called \"N\""},
	{"unexported pointer lent", "type low struct{ N int }", "struct{ *low }", "encoding/json cannot set the embedded *low, which is not exported"},
	{"rules in a tag", "", "struct{ A int `jsonschema:\"minimum=3,required\"` }", "the jsonschema tag \"minimum=3,required\" is no description"},
	{"empty tag", "", "struct{ A int `jsonschema:\"\"` }", "the jsonschema tag \"\" is no description"},
	{"nothing to see", "type shut struct{ a, b int }", "shut", "shut has fields, and encoding/json sees none of them: export them, or take another type"},
	{"nothing to see within", "", "[]*url.URL", "url.Userinfo has fields, and encoding/json sees none of them"},
	{"too deep", "type four[T any] struct{ V [][][][]T }", "four[four[four[four[four[four[four[int]]]]]]]", "the type is too big for a schema"},
}

const agreeHead = `package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"time"

	"github.com/fiducial-dev/fiducial/tool"
)

var (
	_ big.Int
	_ net.IP
	_ netip.Addr
	_ time.Time
	_ slog.Level
	_ url.URL
	_ fmt.Stringer
	_ = os.Exit
	_ = reflect.DeepEqual
)

// what shows the schema that tool.New infers, or its error.
func what[T any]() string {
	t, err := tool.New("x", "", func(context.Context, struct { V T ` + "`json:\"v\"`" + ` }) (string, error) { return "", nil })
	if err != nil {
		return err.Error()
	}
	return property(t)
}

// property is the schema of the argument v, in one form of several that mean the same.
func property(t tool.Tool) string {
	var s struct{ Properties struct{ V any } }
	if err := json.Unmarshal(t.Spec().Schema, &s); err != nil {
		panic(err)
	}
	data, _ := json.Marshal(plain(s.Properties.V))
	return string(data)
}

func plain(v any) any {
	switch v := v.(type) {
	case bool:
		if v {
			return map[string]any{}
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
		if p, ok := v["properties"].(map[string]any); ok && len(p) == 0 && v["type"] == "object" {
			delete(v, "properties")
		}
	}
	return v
}
`

// TestAgreement: what a parameter may be, a field of tool.New's struct may be, with the
// same schema; and what one refuses the other does, in the same words.
func TestAgreement(t *testing.T) {
	module := newModule(t, "example.com/agree")
	var taken, refused, program, attempts strings.Builder
	taken.WriteString(agreeHead + "\n// Cases are those that are taken.\n//\n//fiducial:tools\ntype Cases struct{}\n")
	refused.WriteString(agreeHead + "\n// Cases are those that are refused.\n//\n//fiducial:tools\ntype Cases struct{}\n")
	lines := map[string]string{}
	for i, c := range typeCases {
		text, run := &taken, fmt.Sprintf("\tcompare(%q, %q, what[%s]())\n", c.name, fmt.Sprintf("c%d", i), c.typ)
		if c.why != "" {
			text, run = &refused, fmt.Sprintf("\tfmt.Printf(\"%%s: %%s\\n\", %q, what[%s]())\n", c.name, c.typ)
			attempts.WriteString(run)
		} else {
			program.WriteString(run)
		}
		fmt.Fprintf(text, "\n%s\n\n// C%d is %s.\n//\n//fiducial:tool\nfunc (Cases) C%d(v %s) {}\n", c.decl, i, c.name, i, c.typ)
		lines[c.name] = fmt.Sprintf("parameter v of C%d: ", i)
	}
	taken.WriteString("\nfunc main() {\n\ttools := map[string]tool.Tool{}\n\tfor _, t := range (Cases{}).Tools() {\n\t\ttools[t.Spec().Name] = t\n\t}\n" +
		"\tcompare := func(name, tool, inferred string) {\n\t\tif got := property(tools[tool]); got != inferred {\n" +
		"\t\t\tfmt.Printf(\"%s:\\n generated %s\\n  inferred %s\\n\", name, got, inferred)\n\t\t}\n\t}\n" + program.String() + "}\n")
	refused.WriteString("\nfunc main() {\n" + attempts.String() + "}\n")
	module.write(t, "taken/main.go", []byte(taken.String()))
	module.write(t, "refused/main.go", []byte(refused.String()))

	files, err := toolgen.Generate(t.Context(), toolgen.Config{Dir: string(module), Patterns: []string{"./taken"}, Env: alone()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := toolgen.Write(files); err != nil {
		t.Fatal(err)
	}
	if out := module.run(t, "go", "run", "./taken"); out != "" {
		t.Errorf("they differ:\n%s", out)
	}

	_, err = toolgen.Generate(t.Context(), toolgen.Config{Dir: string(module), Patterns: []string{"./refused"}, Env: alone()})
	mistakes, ok := errors.AsType[*toolgen.Error](err)
	if !ok {
		t.Fatalf("got %v, want mistakes", err)
	}
	said := module.run(t, "go", "run", "./refused")
	for _, c := range typeCases {
		if c.why == "" {
			continue
		}
		if !has(mistakes.Diagnostics, lines[c.name], c.why) {
			t.Errorf("%s: the generator does not say %q of what it calls %q", c.name, c.why, lines[c.name])
		}
		_, text, _ := strings.Cut("\n"+said, "\n"+c.name+": ")
		text, _, _ = strings.Cut(text, "\n")
		if !strings.Contains(strings.ReplaceAll(text, "main.", ""), c.why) {
			t.Errorf("%s: tool.New says %q, want %q", c.name, text, c.why)
		}
	}
}

func has(list []toolgen.Diagnostic, parts ...string) bool {
	for _, d := range list {
		all := true
		for _, p := range parts {
			all = all && strings.Contains(d.Message, p)
		}
		if all {
			return true
		}
	}
	return false
}
