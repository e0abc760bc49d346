// SPDX-License-Identifier: Apache-2.0

package toolgen

import (
	"cmp"
	"errors"
	"go/types"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// propertyName is what Anthropic takes as the key of a property.
var propertyName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

const propertyNameRule = "models take names of 1 to 64 ASCII letters, digits, _, . and -"

// isDescription reports whether a jsonschema tag says something to a reader, as in tool.New.
// Rules such as minimum=3, which other packages read there, would be shown to the model as
// they are.
func isDescription(text string) bool {
	return strings.TrimSpace(text) != "" && !isRule.MatchString(text)
}

var isRule = regexp.MustCompile(`^\S*=`)

// A jsonField is a field of a struct as encoding/json sees it.
type jsonField struct {
	v        *types.Var
	name     string
	tagged   bool // the name is from a tag
	optional bool
	text     string // the jsonschema tag
	hasText  bool   // there is one
	quoted   bool   // the tag says ,string
	depth    int    // how many embedded structs it comes through
}

// structType maps a struct by the rules of encoding/json for which fields there
// are. Its error has the reasons of all fields.
func (m *mapper) structType(t types.Type, u *types.Struct) (*schema, error) {
	fields, wrong := m.fields(u)
	if len(wrong) > 0 {
		wrong = reasons(within(wrong, "in", m.name(t)))
	}
	if len(fields) == 0 && u.NumFields() > 0 && len(wrong) == 0 {
		return nil, no("%s has fields, and encoding/json sees none of them: export them, or take another type", m.name(t))
	}
	s := &schema{kind: "object", closed: true}
	for _, f := range fields {
		of, err := m.field(f)
		if errors.Is(err, errTooBig) {
			return nil, err
		}
		if err != nil {
			err = m.at(within(err, "field "+f.v.Name()+" of", m.name(t)), f.v)
			wrong = append(wrong, reasons(err)...)
			continue
		}
		_, isPointer := types.Unalias(f.v.Type()).(*types.Pointer)
		s.field(f.name, of, f.optional || isPointer)
	}
	switch len(wrong) {
	case 0:
		return s, nil
	case 1:
		return nil, wrong[0]
	}
	return nil, wrong
}

// field returns the schema of a field.
func (m *mapper) field(f jsonField) (*schema, error) {
	switch {
	case f.quoted:
		return nil, no("the json tag's option string is not supported: drop the option")
	case !propertyName.MatchString(f.name):
		return nil, no("bad name %s: %s", quote(f.name), propertyNameRule)
	case f.hasText && !isDescription(f.text):
		return nil, no("the jsonschema tag %s is no description: write in words what the field is", quote(f.text))
	}
	of, err := m.schema(f.v.Type())
	if err == nil {
		of.description = cmp.Or(f.text, m.comment(f.v))
	}
	return of, err
}

// fields lists the fields of a struct and those that embedded structs lend it, in
// the order of the source. Of several with one name the shallowest is taken, then
// the tagged; encoding/json drops them all when that does not decide, and here it
// is a mistake.
func (m *mapper) fields(u *types.Struct) ([]jsonField, several) {
	all, wrong := m.collect(nil, u, 0, nil)
	var kept []jsonField
	var clashed []string
	for _, f := range all {
		rivals := slices.DeleteFunc(slices.Clone(all), func(o jsonField) bool { return o.name != f.name })
		depth := slices.MinFunc(rivals, byDepth).depth
		rivals = slices.DeleteFunc(rivals, func(o jsonField) bool { return o.depth > depth })
		if tagged := slices.DeleteFunc(slices.Clone(rivals), func(o jsonField) bool { return !o.tagged }); len(tagged) > 0 {
			rivals = tagged
		}
		switch {
		case len(rivals) > 1 && !slices.Contains(clashed, f.name):
			wrong = append(wrong, m.at(no("several fields are called %s", quote(f.name)), rivals[1].v))
			clashed = append(clashed, f.name)
		case len(rivals) == 1 && rivals[0].v == f.v:
			kept = append(kept, f)
		}
	}
	return kept, wrong
}

func byDepth(a, b jsonField) int { return cmp.Compare(a.depth, b.depth) }

func (m *mapper) collect(list []jsonField, u *types.Struct, depth int, open []types.Type) (_ []jsonField, wrong several) {
	for i := range u.NumFields() {
		v := u.Field(i)
		tag := reflect.StructTag(u.Tag(i))
		text := tag.Get("json")
		name, options, _ := strings.Cut(text, ",")
		inner, isPointer := structIn(v)
		switch {
		case text == "-", !v.Exported() && (inner == nil || isPointer && name != ""):
			continue
		case inner != nil && name == "":
			if err := m.mayLend(v, inner, open); err != nil {
				wrong = append(wrong, m.at(err, v))
				continue
			}
			st := inner.Underlying().(*types.Struct) //nolint:errcheck // structIn says so
			var more several
			list, more = m.collect(list, st, depth+1, append(slices.Clip(open), inner))
			wrong = append(wrong, more...)
			continue
		}
		f := jsonField{v: v, name: cmp.Or(name, v.Name()), tagged: name != "", depth: depth}
		f.text, f.hasText = tag.Lookup("jsonschema")
		for option := range strings.SplitSeq(options, ",") {
			f.optional = f.optional || option == "omitempty" || option == "omitzero"
			f.quoted = f.quoted || option == "string"
		}
		list = append(list, f)
	}
	return list, wrong
}

// structIn returns the struct type of a field that is an embedded struct, or a pointer to
// one, which may lend its fields; nil for other fields. One that is not exported is a field
// for encoding/json, too, when its tag names it.
func structIn(v *types.Var) (t types.Type, isPointer bool) {
	t = types.Unalias(v.Type())
	p, isPointer := t.(*types.Pointer)
	if isPointer {
		t = types.Unalias(p.Elem())
	}
	if _, ok := t.Underlying().(*types.Struct); !ok || !v.Embedded() {
		return nil, isPointer
	}
	return t, isPointer
}

// mayLend says what keeps an embedded struct of type t from lending its fields.
func (m *mapper) mayLend(v *types.Var, t types.Type, open []types.Type) error {
	if _, isPointer := structIn(v); isPointer && !v.Exported() {
		return no("encoding/json cannot set the embedded *%s, which is not exported", m.name(t))
	}
	if len(open) > maxDepth || slices.ContainsFunc(open, func(o types.Type) bool { return types.Identical(o, t) }) {
		return no("type %s contains itself", m.name(t))
	}
	return nil
}

// comment is the comment of a field, in front of it or behind it.
func (m *mapper) comment(v *types.Var) string {
	f := m.docs[v.Pos()]
	if f == nil {
		return ""
	}
	return strings.TrimSpace(cmp.Or(f.Doc.Text(), f.Comment.Text()))
}
