// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// A point is what an assertion is about: what stands at its path.
type point struct {
	got   any
	there bool
	want  any
	body  any // the whole request
}

var errAbsent = errors.New("nothing stands there")

// ops are the assertions about what stands at a path.
var ops = map[string]func(p point) error{
	"exists": func(p point) error { return must(p.there, errAbsent) },
	"absent": func(p point) error { return unless(p.there, "%s stands there", jsonText(p.got)) },
	"is_null": func(p point) error {
		if !p.there {
			return errAbsent
		}
		return unless(p.got != nil, "%s is not null", jsonText(p.got))
	},
	"eq": present(func(p point) error {
		return unless(!reflect.DeepEqual(p.got, p.want), "got %s, want %s", jsonText(p.got), jsonText(p.want))
	}),
	"ne": func(p point) error {
		return unless(p.there && reflect.DeepEqual(p.got, p.want), "it is %s", jsonText(p.got))
	},
	"contains": present(func(p point) error {
		return unless(!holds(p.got, p.want), "%s does not contain %s", jsonText(p.got), jsonText(p.want))
	}),
	"not_contains": func(p point) error {
		return unless(p.there && holds(p.got, p.want), "%s contains %s", jsonText(p.got), jsonText(p.want))
	},
	"match":      present(func(p point) error { return matches(p.want, contentText(p.got)) }),
	"len_eq":     present(func(p point) error { return compareLen(p, func(n, want int64) bool { return n == want }) }),
	"len_le":     present(func(p point) error { return compareLen(p, func(n, want int64) bool { return n <= want }) }),
	"len_ge":     present(func(p point) error { return compareLen(p, func(n, want int64) bool { return n >= want }) }),
	"bytes_le":   present(bytesLE),
	"unique":     present(unique),
	"all_match":  present(each(func(e, want any) error { return matches(want, plainText(e)) })),
	"all_eq":     present(each(func(e, want any) error { return unless(!reflect.DeepEqual(e, want), "%s", jsonText(e)) })),
	"json_eq":    present(jsonEq),
	"valid_json": present(validJSON),
	"eq_path":    present(eqPath),
	"not_starts_with": func(p point) error {
		got, _ := p.got.(string)
		want, ok := p.want.(string)
		if !ok {
			return errors.New("the value must be a text")
		}
		return unless(p.there && strings.HasPrefix(got, want), "%q starts with %q", got, want)
	},
}

// bodyOps are the assertions about a whole body. Other is the request or the
// repeats that the assertion compares it with.
var bodyOps = map[string]func(body []byte, want any, others [][]byte) error{
	"raw_contains": func(body []byte, want any, _ [][]byte) error {
		return raw(body, want, true)
	},
	"raw_not_contains": func(body []byte, want any, _ [][]byte) error {
		return raw(body, want, false)
	},
	"same_body":           sameBytes,
	"same_across_repeats": sameBytes,
}

func raw(body []byte, want any, contains bool) error {
	text, ok := want.(string)
	if !ok {
		return errors.New("the value must be a text")
	}
	return unless(bytes.Contains(body, []byte(text)) != contains, "%q in the body: %t", text, !contains)
}

func sameBytes(body []byte, _ any, others [][]byte) error {
	if len(others) == 0 {
		return errors.New("there is nothing to compare it with")
	}
	for _, o := range others {
		if !bytes.Equal(o, body) {
			return fmt.Errorf("the bodies differ:\n%s\n%s", body, o)
		}
	}
	return nil
}

func must(ok bool, err error) error {
	if ok {
		return nil
	}
	return err
}

func unless(bad bool, format string, args ...any) error {
	if !bad {
		return nil
	}
	return fmt.Errorf(format, args...)
}

func present(f func(point) error) func(point) error {
	return func(p point) error {
		if !p.there {
			return errAbsent
		}
		return f(p)
	}
}

// holds reports whether a list has the element, or whether the text, as a reader or
// as the wire has it, contains the value.
func holds(got, want any) bool {
	if list, ok := got.([]any); ok && slices.ContainsFunc(list, func(e any) bool { return reflect.DeepEqual(e, want) }) {
		return true
	}
	text, ok := want.(string)
	return ok && (strings.Contains(contentText(got), text) || strings.Contains(jsonText(got), text))
}

func matches(want any, text string) error {
	expr, ok := want.(string)
	if !ok {
		return errors.New("the value must be a regular expression")
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return err
	}
	return unless(!re.MatchString(text), "%.300q does not match %q", text, expr)
}

func number(v any) (int64, error) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, errors.New("the value must be a number")
	}
	return n.Int64()
}

func compareLen(p point, ok func(n, want int64) bool) error {
	want, err := number(p.want)
	if err != nil {
		return err
	}
	var n int
	switch x := p.got.(type) {
	case []any:
		n = len(x)
	case map[string]any:
		n = len(x)
	case string:
		n = utf8.RuneCountInString(x)
	default:
		return fmt.Errorf("%s has no length", jsonText(p.got))
	}
	return unless(!ok(int64(n), want), "the length is %d, the value %d: %.500s", n, want, jsonText(p.got))
}

func bytesLE(p point) error {
	want, err := number(p.want)
	if err != nil {
		return err
	}
	n := len(contentText(p.got))
	return unless(int64(n) > want, "%d bytes, more than %d", n, want)
}

func unique(p point) error {
	list, ok := p.got.([]any)
	if !ok {
		return errors.New("not a list")
	}
	seen := map[string]bool{}
	for _, e := range list {
		if key := jsonText(e); seen[key] {
			return fmt.Errorf("%s stands there twice", key)
		} else {
			seen[key] = true
		}
	}
	return nil
}

func each(f func(e, want any) error) func(point) error {
	return func(p point) error {
		list, ok := p.got.([]any)
		if !ok {
			return errors.New("not a list")
		}
		for i, e := range list {
			if err := f(e, p.want); err != nil {
				return fmt.Errorf("element %d: %w", i, err)
			}
		}
		return nil
	}
}

func jsonEq(p point) error {
	got := p.got
	if text, ok := got.(string); ok {
		var err error
		if got, err = parseJSON([]byte(text)); err != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
	}
	return unless(!reflect.DeepEqual(got, p.want), "got %s, want %s", jsonText(got), jsonText(p.want))
}

func validJSON(p point) error {
	text, ok := p.got.(string)
	if !ok {
		return nil // it came out of JSON
	}
	_, err := parseJSON([]byte(text))
	return err
}

func eqPath(p point) error {
	path, ok := p.want.(string)
	if !ok {
		return errors.New("the value must be a path")
	}
	want, there, err := find(p.body, path)
	switch {
	case err != nil:
		return err
	case !there:
		return fmt.Errorf("nothing stands at %s", path)
	}
	return unless(!reflect.DeepEqual(p.got, want), "got %s, %s is %s", jsonText(p.got), path, jsonText(want))
}
