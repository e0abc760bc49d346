package gemini_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
)

func errorsAs(err error) (*llm.Error, bool) { return errors.AsType[*llm.Error](err) }

// holdRequests holds the bodies of requests against a case's assertions.
func holdRequests(t *testing.T, c wireCase, bodies []string) {
	t.Helper()
	for _, a := range c.Expect.Requests {
		if raw, ok := a["any_of"]; ok {
			var groups [][]map[string]json.RawMessage
			if err := json.Unmarshal(raw, &groups); err != nil {
				t.Fatal(err)
			}
			var first []string
			held := false
			for _, g := range groups {
				var faults []string
				for _, a := range g {
					faults = append(faults, assertFaults(t, a, bodies)...)
				}
				held = held || len(faults) == 0
				first = append(first, faults...)
			}
			if !held {
				t.Errorf("no group holds: %v", first)
			}
			continue
		}
		for _, f := range assertFaults(t, a, bodies) {
			if string(a["level"]) == `"should"` {
				t.Log("should:", f)
				continue
			}
			t.Error(f)
		}
	}
}

func assertFaults(t *testing.T, a map[string]json.RawMessage, bodies []string) []string {
	t.Helper()
	var op, path string
	_ = json.Unmarshal(a["op"], &op)
	_ = json.Unmarshal(a["path"], &path)
	var faults []string
	for i, body := range bodies {
		if n := string(a["request"]); n != `"all"` && n != strconv.Itoa(i+1) && (n != `"last"` || i != len(bodies)-1) {
			continue
		}
		want := any(nil)
		if len(a["value"]) > 0 {
			want = plain(t, a["value"])
		}
		if !holds(t, op, body, path, want, bodies) {
			faults = append(faults, fmt.Sprintf("request %d: %s %s %v does not hold: %v", i+1, path, op, want, lookup(plain(t, json.RawMessage(body)), path)))
		}
	}
	return faults
}

func holds(t *testing.T, op, body, path string, want any, bodies []string) bool {
	t.Helper()
	text, _ := want.(string)
	root := plain(t, json.RawMessage(body))
	got := lookup(root, path)
	length := func() int {
		if l, ok := got.([]any); ok {
			return len(l)
		}
		return -1
	}
	switch op {
	case "raw_contains":
		return strings.Contains(body, text)
	case "raw_not_contains":
		return !strings.Contains(body, text)
	case "same_body":
		n, _ := strconv.Atoi(fmt.Sprint(want))
		return body == bodies[n-1]
	case "eq":
		return reflect.DeepEqual(got, want)
	case "ne":
		return !reflect.DeepEqual(got, want)
	case "eq_path":
		return reflect.DeepEqual(got, lookup(root, text))
	case "exists":
		return got != nil
	case "absent":
		return got == nil
	case "contains", "not_contains":
		data, _ := json.Marshal(got)
		in := strings.Contains(fmt.Sprint(got), text) || strings.Contains(string(data), text)
		return in == (op == "contains")
	case "match":
		return regexp.MustCompile(text).MatchString(fmt.Sprint(got))
	case "len_eq":
		return strconv.Itoa(length()) == fmt.Sprint(want)
	case "json_eq":
		s, _ := got.(string)
		if s == "" {
			return reflect.DeepEqual(got, want)
		}
		return reflect.DeepEqual(plain(t, json.RawMessage(s)), want)
	}
	t.Logf("op %s is not held here", op)
	return true
}

var pathStep = regexp.MustCompile(`([^.\[\]]+)|\[([^\]]+)\]`)

// lookup follows a path such as a.b[0] or a[?k=v][0].c; nil when it leads nowhere.
func lookup(v any, path string) any {
	for _, m := range pathStep.FindAllStringSubmatch(path, -1) {
		switch {
		case m[1] != "":
			obj, _ := v.(map[string]any)
			v = obj[m[1]]
		case strings.HasPrefix(m[2], "?"):
			k, want, _ := strings.Cut(m[2][1:], "=")
			list, _ := v.([]any)
			kept := []any{}
			for _, e := range list {
				if obj, ok := e.(map[string]any); ok && fmt.Sprint(obj[k]) == want {
					kept = append(kept, e)
				}
			}
			v = kept
		default:
			list, _ := v.([]any)
			i, err := strconv.Atoi(m[2])
			if i < 0 {
				i += len(list)
			}
			if err != nil || i < 0 || i >= len(list) {
				return nil
			}
			v = list[i]
		}
	}
	return v
}
