// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// A wireCase is one scripted conversation and what must come of it. Every field of
// the format stands here: one that is unknown is an error, since a case whose
// expectation nobody looks at would pass.
type wireCase struct {
	Format   int          `json:"format"`
	ID       string       `json:"id"`
	Bug      string       `json:"bug"`
	Set      string       `json:"set"`
	Category string       `json:"category"`
	Priority string       `json:"priority"`
	Title    string       `json:"title"`
	Symptom  string       `json:"symptom"`
	Correct  string       `json:"correct"`
	Sources  []source     `json:"sources"`
	Provider providerSpec `json:"provider"`
	Requires []string     `json:"requires"`
	Run      runSpec      `json:"run"`
	Replies  []reply      `json:"replies"`
	Expect   expectation  `json:"expect"`
	Notes    string       `json:"notes"`
}

type source struct {
	Repo  string `json:"repo"`
	Ref   string `json:"ref"`
	Title string `json:"title"`
}

type providerSpec struct {
	Kind   string `json:"kind"`
	Wire   string `json:"wire"`
	Flavor string `json:"flavor"`
	Model  string `json:"model"`
}

// format is the wire format of the replies.
func (p providerSpec) format() string {
	if p.Kind == "engine" {
		return p.Wire
	}
	return p.Kind
}

type runSpec struct {
	System  string     `json:"system"`
	Tools   []toolSpec `json:"tools"`
	History []message  `json:"history"`
	Options optionSpec `json:"options"`
	Limits  limitSpec  `json:"limits"`
	Steps   []stepSpec `json:"steps"`
	Repeat  int        `json:"repeat"`
}

type toolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	SideEffect  string          `json:"side_effect"`
	Behavior    behavior        `json:"behavior"`
	ServerTool  json.RawMessage `json:"server_tool"`
}

type behavior struct {
	Returns           *string                      `json:"returns"`
	ReturnsBy         map[string]map[string]string `json:"returns_by"`
	ReturnsParts      []part                       `json:"returns_parts"`
	ReturnsRepeat     *repeated                    `json:"returns_repeat"`
	ReturnsBase64     *string                      `json:"returns_base64"`
	Error             *string                      `json:"error"`
	Panics            *string                      `json:"panics"`
	BlocksUntilCancel bool                         `json:"blocks_until_cancel"`
	Exec              *string                      `json:"exec"`
	SleepMS           int                          `json:"sleep_ms"`
}

type repeated struct {
	Text  string `json:"text"`
	Times int    `json:"times"`
}

type message struct {
	Role  string `json:"role"`
	Parts []part `json:"parts"`
}

type part struct {
	Type       string          `json:"type"`
	Text       string          `json:"text"`
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Args       json.RawMessage `json:"args"`
	IsError    bool            `json:"is_error"`
	MediaType  string          `json:"media_type"`
	DataBase64 string          `json:"data_base64"`
	Provider   string          `json:"provider"`
}

type optionSpec struct {
	MaxOutputTokens int      `json:"max_output_tokens"`
	ThinkingBudget  int      `json:"thinking_budget"`
	Store           *bool    `json:"store"`
	ParallelTools   *bool    `json:"parallel_tools"`
	Cache           bool     `json:"cache"`
	Stop            []string `json:"stop"`
	Stream          *bool    `json:"stream"`
}

type limitSpec struct {
	MaxSteps            *int   `json:"max_steps"`
	MaxRetries          *int   `json:"max_retries"`
	MaxRetryDelayMS     int    `json:"max_retry_delay_ms"`
	RepeatLimit         *int   `json:"repeat_limit"`
	BudgetTotalTokens   int64  `json:"budget_total_tokens"`
	MaxToolOutputBytes  int    `json:"max_tool_output_bytes"`
	StreamIdleTimeoutMS int    `json:"stream_idle_timeout_ms"`
	Compaction          string `json:"compaction"`
}

type stepSpec struct {
	Do        string     `json:"do"`
	Input     string     `json:"input"`
	Op        string     `json:"op"`
	Bytes     int        `json:"bytes"`
	MS        int        `json:"ms"`
	Interrupt *interrupt `json:"interrupt"`
}

// drives reports whether the step runs the engine, and so has an expectation.
func (s stepSpec) drives() bool { return s.Do == "start" || s.Do == "user" || s.Do == "resume" }

type interrupt struct {
	On      string `json:"on"`
	Nth     int    `json:"nth"`
	Tool    string `json:"tool"`
	How     string `json:"how"`
	Text    string `json:"text"`
	AfterMS int    `json:"after_ms"`
}

type reply struct {
	Status        int                    `json:"status"`
	Headers       map[string]headerValue `json:"headers"`
	Body          *string                `json:"body"`
	BodyBase64    *string                `json:"body_base64"`
	BodyParts     []bodyPart             `json:"body_parts"`
	Chunks        []int                  `json:"chunks"`
	ChunkEvery    int                    `json:"chunk_every"`
	Cut           *cut                   `json:"cut"`
	Stall         *stall                 `json:"stall"`
	Template      bool                   `json:"template"`
	RepeatForever bool                   `json:"repeat_forever"`
	Optional      bool                   `json:"optional"`
}

type bodyPart struct {
	Text   *string `json:"text"`
	Repeat string  `json:"repeat"`
	Times  int     `json:"times"`
}

type cut struct {
	AfterBytes *int   `json:"after_bytes"`
	How        string `json:"how"`
}

type stall struct {
	AfterBytes *int   `json:"after_bytes"`
	Keepalive  string `json:"keepalive"`
	EveryMS    int    `json:"every_ms"`
}

// bytes is the body as it goes out, templates aside.
func (r reply) bytes() ([]byte, error) {
	switch {
	case r.Body != nil:
		return []byte(*r.Body), nil
	case r.BodyBase64 != nil:
		return base64.StdEncoding.DecodeString(*r.BodyBase64)
	}
	var out bytes.Buffer
	for _, p := range r.BodyParts {
		if p.Text != nil {
			out.WriteString(*p.Text)
			continue
		}
		for range p.Times {
			out.WriteString(p.Repeat)
		}
	}
	return out.Bytes(), nil
}

// A headerValue is a text, or a date counted from when it is sent.
type headerValue struct {
	text     string
	dateInMS *int
}

func (h *headerValue) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, &h.text)
	}
	var date struct {
		InMS *int `json:"http_date_in_ms"`
	}
	if err := strict(data, &date); err != nil {
		return err
	}
	if date.InMS == nil {
		return errors.New("a header is neither a text nor http_date_in_ms")
	}
	h.dateInMS = date.InMS
	return nil
}

type expectation struct {
	HTTPRequests *span             `json:"http_requests"`
	Steps        []stepExpectation `json:"steps"`
	ToolCalls    *[]callExpect     `json:"tool_calls"`
	ToolRuns     map[string]span   `json:"tool_runs"`
	Requests     []assertion       `json:"requests"`
	Invariants   []invariant       `json:"invariants"`
	Delays       []delay           `json:"delays"`
	Processes    []json.RawMessage `json:"processes"` // of exec tools, which there are none of
}

type stepExpectation struct {
	Outcome      words             `json:"outcome"`
	StopReason   words             `json:"stop_reason"`
	FinalText    *string           `json:"final_text"`
	FinalTextLen *int              `json:"final_text_len"`
	FinalTextNot words             `json:"final_text_not"`
	TextStream   *string           `json:"text_stream"`
	Reasoning    *string           `json:"reasoning_text"`
	Usage        *usageExpect      `json:"usage"`
	Error        *errorExpect      `json:"error"`
	MaxMS        *int              `json:"max_ms"`
	AnyOf        []stepExpectation `json:"any_of"`
}

type usageExpect struct {
	Known       *bool  `json:"known"`
	InputTotal  *int64 `json:"input_total"`
	CacheRead   *int64 `json:"cache_read"`
	CacheWrite  *int64 `json:"cache_write"`
	OutputTotal *int64 `json:"output_total"`
	Reasoning   *int64 `json:"reasoning"`
}

type errorExpect struct {
	Class           words  `json:"class"`
	Retryable       *bool  `json:"retryable"`
	HTTPStatus      *int   `json:"http_status"`
	MessageContains words  `json:"message_contains"`
	RetryAfterMS    *int64 `json:"retry_after_ms"`
}

type callExpect struct {
	Name            string          `json:"name"`
	Args            json.RawMessage `json:"args"`
	ID              string          `json:"id"`
	ArgsRawContains words           `json:"args_raw_contains"`
}

type assertion struct {
	Request   which           `json:"request"`
	Path      string          `json:"path"`
	Op        string          `json:"op"`
	Value     json.RawMessage `json:"value"`
	Level     string          `json:"level"`
	IfPresent bool            `json:"if_present"`
	AnyOf     [][]assertion   `json:"any_of"`
}

type invariant struct {
	Request              which  `json:"request"`
	Name                 string `json:"name"`
	AllowReplacementChar bool   `json:"allow_replacement_char"`
	Level                string `json:"level"`
}

type delay struct {
	Between [2]int `json:"between"`
	MinMS   *int64 `json:"min_ms"`
	MaxMS   *int64 `json:"max_ms"`
}

// words is one text or a list of allowed ones.
type words []string

func (w *words) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		*w = words{""}
		return json.Unmarshal(data, &(*w)[0])
	}
	return json.Unmarshal(data, (*[]string)(w))
}

// span is a number, or the bounds of one.
type span struct {
	Min *int `json:"min"`
	Max *int `json:"max"`
}

func (s *span) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		n, err := strconv.Atoi(string(data))
		s.Min, s.Max = &n, &n
		return err
	}
	type plain span
	return strict(data, (*plain)(s))
}

func (s span) holds(n int) bool {
	return (s.Min == nil || n >= *s.Min) && (s.Max == nil || n <= *s.Max)
}

func (s span) String() string {
	bound := func(p *int, open string) string {
		if p == nil {
			return open
		}
		return strconv.Itoa(*p)
	}
	return bound(s.Min, "0") + " to " + bound(s.Max, "any")
}

// which selects requests: a number from 1, all, or the last.
type which struct {
	n         int
	all, last bool
}

func (w *which) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"all"`:
		w.all = true
		return nil
	case `"last"`:
		w.last = true
		return nil
	}
	n, err := strconv.Atoi(string(data))
	if err != nil || n < 1 {
		return fmt.Errorf("a request is a number from 1, all or last, not %s", data)
	}
	w.n = n
	return nil
}

// strict decodes without passing over anything.
func strict(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if dec.More() {
		return errors.New("there is more behind the JSON value")
	}
	return nil
}

// readCase reads a file and refuses what the runner does not know.
func readCase(path string) (*wireCase, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseCase(data)
}

func parseCase(data []byte) (*wireCase, error) {
	var c wireCase
	if err := strict(data, &c); err != nil {
		return nil, err
	}
	if c.Format != 1 {
		return nil, fmt.Errorf("format %d; the runner knows 1", c.Format)
	}
	c.Run.Repeat = max(c.Run.Repeat, 1)
	for i := range c.Replies {
		if c.Replies[i].Status == 0 {
			c.Replies[i].Status = 200
		}
	}
	return &c, c.validate()
}

func known(kind, word string, allowed ...string) error {
	if slices.Contains(allowed, word) {
		return nil
	}
	return fmt.Errorf("unknown %s %q", kind, word)
}

// validate refuses words that the runner has no meaning for.
func (c *wireCase) validate() error {
	errs := []error{
		known("provider", c.Provider.Kind, "anthropic", "openai-chat", "openai-responses", "gemini", "engine"),
		known("wire", c.Provider.format(), "anthropic", "openai-chat", "openai-responses", "gemini"),
		known("flavor", cmp.Or(c.Provider.Flavor, "openai"), strings.Fields(`openai azure generic ollama vllm llamacpp lmstudio openrouter groq
			deepseek mistral dashscope`)...),
		known("compaction", c.Run.Limits.Compaction, "", "off"),
	}
	for _, tag := range c.Requires {
		_, offered := features[tag]
		_, lacking := missing[tag]
		if !offered && !lacking {
			errs = append(errs, fmt.Errorf("unknown feature %q in requires", tag))
		}
	}
	for _, tl := range c.Run.Tools {
		errs = append(errs, known("side_effect", tl.SideEffect, "", "none", "write"))
	}
	drives := 0
	for _, s := range c.Run.Steps {
		errs = append(errs, s.validate())
		if s.drives() {
			drives++
		}
	}
	if len(c.Expect.Steps) > drives {
		errs = append(errs, fmt.Errorf("%d steps are expected of %d", len(c.Expect.Steps), drives))
	}
	for i, r := range c.Replies {
		errs = append(errs, r.validate(i == len(c.Replies)-1))
	}
	for _, s := range c.Expect.Steps {
		errs = append(errs, s.validate())
	}
	for _, a := range c.Expect.Requests {
		errs = append(errs, a.validate())
	}
	for _, i := range c.Expect.Invariants {
		if _, ok := invariants[i.Name]; !ok {
			errs = append(errs, fmt.Errorf("unknown invariant %q", i.Name))
		}
		errs = append(errs, known("level", i.Level, "", "must", "should"))
	}
	return errors.Join(errs...)
}

func (r reply) validate(last bool) error {
	bodies := 0
	for _, there := range []bool{r.Body != nil, r.BodyBase64 != nil, r.BodyParts != nil} {
		if there {
			bodies++
		}
	}
	var errs []error
	if bodies > 1 {
		errs = append(errs, errors.New("a reply has more than one body"))
	}
	if r.Cut != nil && r.Stall != nil {
		errs = append(errs, errors.New("a reply is cut and stalls"))
	}
	if r.RepeatForever && !last {
		errs = append(errs, errors.New("only the last reply can repeat for ever"))
	}
	if r.Cut != nil {
		errs = append(errs, known("cut", r.Cut.How, "end", "eof", "rst"))
	}
	return errors.Join(errs...)
}

func (s stepSpec) validate() error {
	errs := []error{known("step", s.Do, "start", "user", "resume", "new_process", "store", "advance_clock")}
	if s.Do == "store" {
		errs = append(errs, known("store op", s.Op, "truncate_tail", "nul_fill_middle"))
	}
	if i := s.Interrupt; i != nil {
		errs = append(errs,
			known("event", i.On, "request_sent", "text_delta", "tool_start", "tool_persisted", "stream_end"),
			known("interrupt", i.How, "cancel", "kill", "steer"))
	}
	return errors.Join(errs...)
}

func (s stepExpectation) validate() error {
	var errs []error
	for _, o := range s.Outcome {
		errs = append(errs, known("outcome", o, "completed", "error", "cancelled", "killed", "stopped"))
	}
	for _, r := range s.StopReason {
		errs = append(errs, known("stop_reason", r, strings.Fields(`end_turn tool_use max_tokens stop_sequence content_filter
			refusal pause context_window incomplete step_limit budget loop cancelled unknown`)...))
	}
	if s.Error != nil {
		for _, k := range s.Error.Class {
			errs = append(errs, known("error class", k, strings.Fields(`auth permission not_found invalid_request
				context_overflow rate_limit quota overloaded server transport stream_incomplete stream_idle malformed_stream
				malformed_tool_call content_filter timeout cancelled budget loop store_corrupt indeterminate_tool`)...))
		}
	}
	for _, a := range s.AnyOf {
		errs = append(errs, a.validate())
	}
	return errors.Join(errs...)
}

func (a assertion) validate() error {
	if a.AnyOf != nil {
		var errs []error
		for _, group := range a.AnyOf {
			for _, in := range group {
				errs = append(errs, in.validate())
			}
		}
		return errors.Join(errs...)
	}
	_, plain := ops[a.Op]
	_, whole := bodyOps[a.Op]
	if !plain && !whole {
		return fmt.Errorf("unknown op %q", a.Op)
	}
	if a.Request == (which{}) {
		return fmt.Errorf("the assertion %s %q names no request", a.Op, a.Path)
	}
	return known("level", a.Level, "", "must", "should")
}

// features are what a case may require and the engine has; missing is what it
// does not have, and why.
var (
	features = map[string]struct{}{
		"history-import": {}, "durable-store": {}, "file-store": {}, "steering": {}, "loop-guard": {},
		"budget": {}, "prompt-cache": {}, "idle-timeout": {}, "output-cap": {}, "server-tools": {},
	}
	missing = map[string]string{
		"exec-tool": "the engine ships no tool that starts processes",
	}
)

// lacks says why the case does not apply, "" when it does.
func (c *wireCase) lacks() string {
	for _, tag := range c.Requires {
		if why, ok := missing[tag]; ok {
			return tag + ": " + why
		}
	}
	for _, tl := range c.Run.Tools {
		if tl.Behavior.Exec != nil {
			return "exec-tool: " + missing["exec-tool"]
		}
	}
	if len(c.Expect.Processes) > 0 {
		return "exec-tool: " + missing["exec-tool"]
	}
	return ""
}
