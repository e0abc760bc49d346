// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/tool"
)

type in struct {
	Path  string   `json:"path" jsonschema:"where to look"`
	Depth int      `json:"depth,omitempty"`
	Names []string `json:"names,omitempty"`
}

func echo(t *testing.T) *tool.Server {
	t.Helper()
	return server(t, tool.Must(tool.New("echo", "Echoes.", func(_ context.Context, v in) (string, error) {
		return fmt.Sprintf("%s %d %v", v.Path, v.Depth, v.Names), nil
	})))
}

func server(t *testing.T, tools ...tool.Tool) *tool.Server {
	t.Helper()
	s, err := tool.NewServer(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func call(name, input string) tool.Call {
	return tool.Call{ID: "1", Name: name, Input: json.RawMessage(input)}
}

// E-6, E-92, E-95: the schema is inferred, with descriptions; optional fields are
// not required.
func TestE92_Schema(t *testing.T) {
	spec := echo(t).Specs()[0]
	want := `{"type":"object","properties":{"path":{"type":"string","description":"where to look"},"depth":{"type":"integer"},"names":{"type":"array","items":{"type":"string"}}},"required":["path"],"additionalProperties":false}`
	if got := string(spec.Schema); got != want {
		t.Errorf("schema\n got %s\nwant %s", got, want)
	}
	again := tool.Must(tool.New("echo", "Echoes.", func(context.Context, in) (string, error) { return "", nil })).Spec() // E-98
	if string(again.Schema) != want {
		t.Error("the schema is not the same again")
	}
}

// E-95, E-126: input is decoded strictly, and what does not fit is answered with
// what was wrong and what is expected; the function is not entered.
func TestE95_StrictInput(t *testing.T) {
	entered := false
	s := server(t, tool.Must(tool.New("echo", "", func(context.Context, in) (string, error) { entered = true; return "ran", nil })))
	for input, want := range map[string]string{
		`{"path":"a"}`:                              "",
		`{"path":"a","depth":3,"names":["x"]}`:      "",
		`{ "path" : "a" , "depth" : 0 }`:            "",
		`{"path":"a","names":null}`:                 `"names" is null and must be an array (leave it out when there is none)`,
		`{}`:                                        "path",
		`{"Path":"a"}`:                              "path",
		`{"path":"a","DEPTH":3}`:                    "DEPTH",
		`{"path":"a","more":1}`:                     "more",
		`{"more":1,"less":2}`:                       `"path" is missing, "less" is not known, "more" is not known`,
		`{"path":null}`:                             "null",
		`{"path":1}`:                                "string",
		`{"path":"a","depth":"3"}`:                  "integer",
		`{"path":"a","depth":1.5}`:                  "integer",
		`{"path":"a","depth":99999999999999999999}`: "depth",
		`{"path":"a","names":["x",null]}`:           "null",
		`{"path":"a","names":"x"}`:                  "array",
		`{"path":"a","path":"b"}`:                   `"path" is given more than once`,
		`{"path":"a","p\u0061th":"b"}`:              `"path" is given more than once`,
		`[]`:                                        "object",
		`{"path":"a"} {}`:                           "after",
		`{"path":"a"`:                               "unexpected end",
	} {
		entered = false
		r := s.Execute(t.Context(), call("echo", input))
		if (want == "") != (r.Status == llm.StatusSuccess) || entered != (want == "") {
			t.Errorf("%s: %s, entered %t", input, r.Summary, entered)
			continue
		}
		if want != "" && (!strings.Contains(r.Summary, want) || !strings.Contains(r.Summary, "Expected: {") || !strings.Contains(r.Summary, "was not run")) {
			t.Errorf("%s: %q lacks %q", input, r.Summary, want)
		}
	}
}

// Schemas that say more than the Go type are held to, and wider input types work.
func TestSchemasOfOnesOwn(t *testing.T) {
	one := 1.0
	type mode string
	type args struct {
		Mode mode            `json:"mode"`
		N    int             `json:"n"`
		Deep struct{ A int } `json:"deep,omitzero"`
	}
	x := tool.Must(tool.New("x", "", func(_ context.Context, a args) (string, error) { return string(a.Mode), nil },
		tool.WithTypeSchema[mode](&jsonschema.Schema{Type: "string", Enum: []any{"fast", "slow"}})))
	s := server(t, x)
	for input, ok := range map[string]bool{
		`{"mode":"fast","n":1}`: true, `{"mode":"other","n":1}`: false, `{"mode":"fast","n":1,"deep":{"A":1}}`: true,
		`{"mode":"fast","n":1,"deep":{"A":1,"B":2}}`: false, `{"mode":"fast","n":1,"deep":{"a":1}}`: false,
	} {
		if r := s.Execute(t.Context(), call("x", input)); (r.Status == llm.StatusSuccess) != ok {
			t.Errorf("%s: %s", input, r.Summary)
		}
	}
	m := tool.Must(tool.New("m", "", func(_ context.Context, a map[string]int) (int, error) { return len(a), nil },
		tool.WithSchema(&jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Type: "integer", Minimum: &one}})))
	s = server(t, m)
	for input, ok := range map[string]bool{`{"a":1,"b":2}`: true, `{"a":0}`: false, `{}`: true} {
		if r := s.Execute(t.Context(), call("m", input)); (r.Status == llm.StatusSuccess) != ok {
			t.Errorf("%s: %s", input, r.Summary)
		}
	}
	for name, err := range map[string]error{
		"no name":     second(tool.New("", "", func(context.Context, in) (string, error) { return "", nil })),
		"no function": second(tool.New[in, string]("x", "", nil)),
		"a channel":   second(tool.New("x", "", func(context.Context, struct{ C chan int }) (string, error) { return "", nil })),
		"no object":   second(tool.New("x", "", func(context.Context, int) (string, error) { return "", nil })),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// E-96, E-99, E-100: how what a function gives back is shown.
func TestE99_Output(t *testing.T) {
	exact := strings.Repeat("a", 200)
	if o := tool.TextOutput(exact); o.Summary != exact || o.Content != "" {
		t.Error("200 bytes are the summary alone")
	}
	long := strings.Repeat("é", 101) + "\nsecond\n"
	o := tool.TextOutput(long)
	if want := "2 lines: " + strings.Repeat("é", 80) + "..."; o.Summary != want || o.Content != long {
		t.Errorf("summary %q", o.Summary)
	}
	type out struct {
		A int    `json:"a"`
		B string `json:"b"`
	}
	s := server(t, tool.Must(tool.New("json", "", func(context.Context, struct{}) (out, error) { return out{1, "<b>"}, nil })),
		tool.Must(tool.New("bad", "", func(context.Context, struct{}) (chan int, error) { return nil, nil })),
		tool.Must(tool.New("number", "", func(context.Context, struct{}) (float64, error) { return 2.5, nil })))
	if r := s.Execute(t.Context(), call("json", "{}")); r.Summary != `{"a":1,"b":"<b>"}` {
		t.Errorf("got %s", r.Summary)
	}
	if r := s.Execute(t.Context(), call("number", "{}")); r.Summary != "2.5" {
		t.Errorf("got %s", r.Summary)
	}
	if r := s.Execute(t.Context(), call("bad", "{}")); r.Status != llm.StatusError || !strings.Contains(r.Summary, "cannot be shown") {
		t.Errorf("got %+v", r)
	}
}

// E-107, E-108: kinds of error become statuses; partial output of a cancelled or
// interrupted call is kept.
func TestE107_Errors(t *testing.T) {
	part := tool.Output{Summary: "half", Content: "more"}
	for _, c := range []struct {
		err    error
		status llm.Status
		body   string
	}{
		{errors.New("plain"), llm.StatusError, "plain"},
		{errors.New(""), llm.StatusError, "the tool failed without a message"},
		{fmt.Errorf("%w", errors.New("")), llm.StatusError, "the tool failed without a message"},
		{tool.Errorf(tool.Failed, "no %s: %w", "luck", errors.ErrUnsupported), llm.StatusError, "no luck: unsupported operation"},
		{&tool.Error{Kind: tool.Internal, Output: part}, llm.StatusError, "internal"},
		{&tool.Error{Kind: tool.Cancelled, Message: "stopped", Output: part}, llm.StatusCancelled, "stopped\nhalf\nmore"},
		{fmt.Errorf("wrapped: %w", &tool.Error{Kind: tool.Interrupted, Err: errors.New("early")}), llm.StatusInterrupted, "wrapped: early"},
	} {
		s := server(t, tool.Must(tool.New("x", "", func(context.Context, struct{}) (string, error) { return "", c.err })))
		r := s.Execute(t.Context(), call("x", "{}"))
		if r.Status != c.status || r.Body() != c.body || r.CallID != "1" || r.Name != "x" || !r.IsError() {
			t.Errorf("%v: %+v", c.err, r)
		}
	}
	s := server(t, tool.Must(tool.New("x", "", func(context.Context, struct{}) (string, error) {
		var none *tool.Error
		return "", none // a mistake that is easily made
	})))
	if r := s.Execute(t.Context(), call("x", "{}")); r.Status != llm.StatusError || !strings.HasPrefix(r.Summary, "the tool panicked: ") {
		t.Errorf("got %+v", r)
	}
	if !errors.Is(tool.Errorf(tool.Failed, "x: %w", errors.ErrUnsupported), errors.ErrUnsupported) {
		t.Error("the cause is lost")
	}
}

// E-109: a function finds its call, and the key tells calls apart.
func TestE109_Call(t *testing.T) {
	s := server(t, tool.Must(tool.New("x", "", func(ctx context.Context, _ struct{}) (string, error) {
		c, ok := tool.FromContext(ctx)
		return fmt.Sprint(c.Key(), " ", ok), nil
	})))
	c := call("x", "{}")
	c.Run, c.Op, c.Ordinal = "run", 7, 2
	if r := s.Execute(t.Context(), c); r.Summary != "run/7/2 true" {
		t.Errorf("got %s", r.Summary)
	}
	if _, ok := tool.FromContext(t.Context()); ok {
		t.Error("a call outside a call")
	}
}

// E-101 to E-105: the server's list.
func TestE101_Server(t *testing.T) {
	mk := func(name, text string) tool.Tool {
		return tool.Must(tool.New(name, "", func(context.Context, struct{}) (string, error) { return text, nil }))
	}
	s := server(t, mk("c", "1"), mk("a", "1"), mk("b", "1"))
	names := func() (out string) {
		for _, spec := range s.Specs() {
			out += spec.Name
		}
		return out
	}
	check := func(err, want error, list string) {
		t.Helper()
		if !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("got %v, want %v", err, want)
		}
		if got := names(); got != list {
			t.Errorf("list %s, want %s", got, list)
		}
	}
	check(s.Register(mk("d", ""), mk("a", "")), tool.ErrDuplicate, "abc") // all or none
	check(s.Register(mk("d", ""), mk("d", "")), tool.ErrDuplicate, "abc")
	check(s.Unregister("x"), tool.ErrNoTool, "abc")
	check(s.Replace(mk("x", "")), tool.ErrNoTool, "abc")
	check(s.Unregister("b"), nil, "ac")
	check(s.Replace(mk("a", "2")), nil, "ac")
	if r := s.Execute(t.Context(), call("a", "{}")); r.Summary != "2" {
		t.Errorf("got %s", r.Summary)
	}
	unlock1, unlock2 := s.Lock(), s.Lock()
	unlock1()
	unlock1() // once only
	check(s.Register(mk("z", "")), tool.ErrLocked, "ac")
	unlock2()
	check(s.Register(mk("z", "")), nil, "acz")
	if _, err := tool.NewServer(mk("a", ""), mk("a", "")); !errors.Is(err, tool.ErrDuplicate) {
		t.Error(err)
	}
}

// E-104, E-105: calls in flight keep the tool that they began with.
func TestE105_ReplaceInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mk := func(text string) tool.Tool {
			return tool.Must(tool.New("x", "", func(context.Context, struct{}) (string, error) { time.Sleep(time.Second); return text, nil }))
		}
		s := server(t, mk("old"))
		got := make(chan string, 1)
		go func() { got <- s.Execute(t.Context(), call("x", "{}")).Summary }()
		time.Sleep(time.Millisecond)
		if err := s.Replace(mk("new")); err != nil {
			t.Fatal(err)
		}
		if err := s.Unregister("x"); err != nil {
			t.Fatal(err)
		}
		if g := <-got; g != "old" {
			t.Errorf("got %s", g)
		}
	})
}

// E-110: a panic is a result, with its stack for the program.
func TestE110_Panic(t *testing.T) {
	s := server(t, tool.Must(tool.New("x", "", func(context.Context, struct{}) (string, error) { panic("bug") })))
	if r := s.Execute(t.Context(), call("x", "{}")); r.Status != llm.StatusError || r.Summary != "the tool panicked: bug" || r.Content != "" {
		t.Errorf("got %+v", r)
	}
}

// A tool's time limit ends its context; who ignores it is left behind, and the
// outcome is unknown.
func TestTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		obeys := tool.Must(tool.New("obeys", "", func(ctx context.Context, _ struct{}) (string, error) { <-ctx.Done(); return "", ctx.Err() },
			tool.WithTraits(tool.Traits{TimeLimit: time.Second})))
		ignores := tool.Must(tool.New("ignores", "", func(context.Context, struct{}) (string, error) { <-free; return "late", nil },
			tool.WithTraits(tool.Traits{TimeLimit: time.Second})))
		s := server(t, obeys, ignores)
		if r := s.Execute(t.Context(), call("obeys", "{}")); r.Status != llm.StatusInterrupted || r.Summary != tool.ErrTimeLimit.Error() {
			t.Errorf("got %+v", r)
		}
		began := time.Now()
		if r := s.Execute(t.Context(), call("ignores", "{}")); r.Status != llm.StatusUnknown || time.Since(began) > 4*time.Second {
			t.Errorf("got %+v after %v", r, time.Since(began))
		}
		close(free)
	})
}

// E-112 to E-118: exact sizes of a cut.
func TestE112_OutputLimits(t *testing.T) {
	note := func(n int) string {
		return fmt.Sprintf("\n\n[truncated: %d bytes of output are left out here; ask for less, or for a part]", n)
	}
	reserve := len(note(1)) + 19
	for _, c := range []struct {
		content         string
		limit, per, own int
		kept            int // -1: untouched
	}{
		{strings.Repeat("a", 500), 500, 0, 0, -1},
		{strings.Repeat("a", 501), 500, 0, 0, 500 - reserve},
		{strings.Repeat("a", 500), 0, 0, 0, -1},
		{strings.Repeat("a", 500), 100, 1000, 0, -1}, // an override wins, larger or smaller
		{strings.Repeat("a", 500), 1000, 200, 0, 200 - reserve},
		{strings.Repeat("a", 500), 1000, 0, 300, 300 - reserve},
		{strings.Repeat("a", 500), reserve, 0, 0, 0},
		{strings.Repeat("a", 500), 10, 0, 0, 0}, // only the note remains, longer than the limit
		{strings.Repeat("é", 300), 301, 0, 0, (301 - reserve) / 2 * 2},
		{strings.Repeat("🙂", 200), 303, 0, 0, (303 - reserve) / 4 * 4},
	} {
		summary := strings.Repeat("s", 3000)
		x := tool.Must(tool.New("x", "", func(context.Context, struct{}) (tool.Output, error) {
			return tool.Output{Summary: summary, Content: c.content}, nil
		}, tool.WithTraits(tool.Traits{OutputLimit: c.own})))
		s := server(t, x)
		var cuts []tool.Cut
		per := map[string]int{}
		if c.per > 0 {
			per["x"] = c.per
		}
		if err := s.SetOutputLimit(c.limit, per, func(cut tool.Cut) { cuts = append(cuts, cut) }); err != nil {
			t.Fatal(err)
		}
		r := s.Execute(t.Context(), call("x", "{}"))
		if r.Summary != summary {
			t.Error("the summary was cut")
		}
		if c.kept < 0 {
			if r.Content != c.content || len(cuts) > 0 {
				t.Errorf("limit %d: %d of %d bytes", c.limit, len(r.Content), len(c.content))
			}
			continue
		}
		if want := c.content[:c.kept] + note(len(c.content)-c.kept); r.Content != want {
			t.Errorf("limit %d/%d/%d: got %q", c.limit, c.per, c.own, r.Content)
		}
		if len(cuts) != 1 || cuts[0].Before != len(c.content) || cuts[0].After != len(r.Content) || cuts[0].Tool != "x" {
			t.Errorf("cuts %+v", cuts)
		}
	}
}

// A cut leaves no half of a word, which may be a secret that a mask looks for as a
// whole; a text without blanks is cut all the same.
func TestCutLeavesWholeWords(t *testing.T) {
	for _, c := range []struct{ text, kept string }{
		{strings.Repeat("word ", 900) + strings.Repeat("x", 120) + strings.Repeat(" more", 200), strings.Repeat("word ", 900)},
		{strings.Repeat("x", 6000), ""},
	} {
		s := server(t, tool.Must(tool.New("x", "", func(context.Context, struct{}) (tool.Output, error) {
			return tool.Output{Summary: "s", Content: c.text}, nil
		})))
		if err := s.SetOutputLimit(4700, nil, nil); err != nil {
			t.Fatal(err)
		}
		got, _, cut := strings.Cut(s.Execute(t.Context(), call("x", "{}")).Content, "\n\n[truncated")
		if !cut || c.kept != "" && got != c.kept || c.kept == "" && len(got) < 4500 {
			t.Errorf("kept %d bytes, ending with %q", len(got), got[max(0, len(got)-40):])
		}
	}
}

// Without a limit of one's own there is the default, for the content, for the text
// of an error, and for what calls itself a summary; images are not counted.
func TestDefaultOutputLimit(t *testing.T) {
	const limit = tool.DefaultOutputLimit
	large := strings.Repeat("é", 2<<20)
	for name, run := range map[string]func() (tool.Output, error){
		"content": func() (tool.Output, error) { return tool.Output{Summary: "s", Content: large}, nil },
		"summary": func() (tool.Output, error) { return tool.Output{Summary: large}, nil },
		"both":    func() (tool.Output, error) { return tool.Output{Summary: large, Content: large}, nil },
		"error":   func() (tool.Output, error) { return tool.Output{}, errors.New(large) },
		"panic":   func() (tool.Output, error) { panic(large) },
		"interrupted": func() (tool.Output, error) {
			return tool.Output{}, &tool.Error{Kind: tool.Interrupted, Message: large, Output: tool.Output{Content: large}}
		},
	} {
		s := server(t, tool.Must(tool.New("x", "", func(context.Context, struct{}) (tool.Output, error) { return run() })))
		r, cut := s.ExecuteCut(t.Context(), call("x", "{}"))
		for _, text := range []string{r.Summary, r.Content} {
			if len(text) > limit || len(text) > 1 && len(text) < limit-200 || !utf8.ValidString(text) {
				t.Errorf("%s: %d bytes", name, len(text))
			}
			if len(text) > 1 && !strings.HasSuffix(text, "ask for less, or for a part]") {
				t.Errorf("%s: ends with %q", name, text[len(text)-80:])
			}
		}
		if cut.Tool != "x" || cut.Limit != limit || cut.Before < len(large) || cut.After < limit-200 || cut.After > 2*limit {
			t.Errorf("%s: %v", name, cut)
		}
		if err := s.SetOutputLimit(0, nil, nil); err != nil {
			t.Fatal(err)
		}
		if r, cut := s.ExecuteCut(t.Context(), call("x", "{}")); len(r.Summary)+len(r.Content) < len(large) || cut != (tool.Cut{}) {
			t.Errorf("%s: %d bytes without a limit", name, len(r.Summary)+len(r.Content))
		}
	}
	exact := strings.Repeat("a", limit)
	s := server(t, tool.Must(tool.New("x", "", func(context.Context, struct{}) (tool.Output, error) {
		return tool.Output{Content: exact, Images: []llm.Image{{Media: "image/png", Data: make([]byte, 2*limit)}}}, nil
	})))
	if r, cut := s.ExecuteCut(t.Context(), call("x", "{}")); r.Content != exact || len(r.Images) != 1 || cut != (tool.Cut{}) {
		t.Errorf("exactly the limit: %v", cut)
	}
}

// A limit that is smaller than a good summary leaves it whole; a longer one is held
// to the larger of both. Less than nothing is no limit for one tool.
func TestE112_Summaries(t *testing.T) {
	text := func(n int) string { return strings.Repeat("s", n) }
	for _, c := range []struct {
		limit, own, per, n int
		whole              bool
	}{
		{1001, 0, 0, 4096, true},
		{1001, 0, 0, 4097, false},
		{1001, 0, 0, 200_000, false},
		{5000, 0, 0, 5000, true},
		{5000, 0, 0, 5001, false},
		{1001, -1, 0, 200_000, true},
		{1001, 0, -1, 200_000, true},
		{1001, 10_000, 0, 9000, true},
		{-1, 0, 0, 200_000, true},
	} {
		s := server(t, tool.Must(tool.New("x", "", func(context.Context, struct{}) (tool.Output, error) {
			return tool.Output{}, errors.New(text(c.n))
		}, tool.WithTraits(tool.Traits{OutputLimit: c.own}))))
		unlock := s.Lock() // limits are no part of what is advertised
		if err := s.SetOutputLimit(c.limit, map[string]int{"x": c.per}, nil); err != nil {
			t.Fatal(err)
		}
		unlock()
		r := s.Execute(t.Context(), call("x", "{}"))
		if whole := r.Summary == text(c.n); whole != c.whole || len(r.Summary) > max(c.n, c.limit) {
			t.Errorf("%+v: %d bytes", c, len(r.Summary))
		}
	}
}

// E-121: unknown tools are answered with the names there are, whole.
func TestE106_UnknownTool(t *testing.T) {
	s := echo(t)
	if err := s.SetOutputLimit(1, nil, nil); err != nil {
		t.Fatal(err)
	}
	if r := s.Execute(t.Context(), call("nope", "{}")); r.Status != llm.StatusError || r.Summary != `there is no tool "nope"; the tools are: ["echo"]` {
		t.Errorf("got %+v", r)
	}
}

// The fast way of checking input agrees with the schema on whatever it is given.
func FuzzInput(f *testing.F) {
	for _, s := range []string{
		`{"path":"a"}`, `{"path":"a","depth":1}`, `{"path":"a","x":1}`, `{"Path":"a"}`, `{"path":null}`, `{"a\u0062":1}`, `{"path":"\ud800"}`, `{"path":"a","depth":1e2}`,
		`{"path":"a","number":"1"}`, `{"path":"a","bytes":[1]}`, `{"path":"a","maybe":null,"number":1.50,"bytes":"aGk="}`,
	} {
		f.Add(s)
	}
	type plain struct {
		Path  string  `json:"path"`
		Depth int     `json:"depth,omitempty"`
		Rate  float64 `json:"rate,omitempty"`
		On    bool    `json:"on,omitempty"`
		// What encoding/json reads from more than the schema says.
		Number json.Number  `json:"number,omitempty"`
		Bytes  []byte       `json:"bytes,omitempty"`
		Maybe  *json.Number `json:"maybe"`
	}
	x := tool.Must(tool.New("x", "", func(_ context.Context, v plain) (plain, error) { return v, nil }))
	s, err := tool.NewServer(x)
	if err != nil {
		f.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(x.Spec().Schema, &schema); err != nil {
		f.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, input string) {
		raw, err := llm.Call{Name: "x", Args: input}.Input()
		if err != nil {
			return
		}
		r := s.Execute(t.Context(), tool.Call{Name: "x", Input: raw})
		var tree any
		if json.Unmarshal(raw, &tree) != nil {
			t.Fatalf("%q passed for an object", input)
		}
		if ok := r.Status == llm.StatusSuccess; ok && resolved.Validate(tree) != nil {
			t.Errorf("%q was taken against its schema: %v", input, resolved.Validate(tree))
		}
		if !utf8.ValidString(r.Content) {
			t.Errorf("%q: content is not UTF-8", input)
		}
	})
}
