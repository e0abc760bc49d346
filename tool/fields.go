// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// A jsonField is a field of a struct as encoding/json sees it.
type jsonField struct {
	goName    string
	typ       reflect.Type
	lent      *jsonschema.Schema // in the place of a type's
	name      string
	tagged    bool // the name is from a tag
	optional  bool
	text      string // the jsonschema tag
	described bool   // there is one
	quoted    bool   // the tag says ,string
	depth     int    // how many embedded structs it comes through
}

// fields lists the fields of a struct and those that embedded structs lend it, in the
// order of the source. Of several with one name the shallowest is taken, then the tagged;
// encoding/json drops them all when that does not decide, and here it is a mistake.
func (i *inferrer) fields(t reflect.Type) ([]jsonField, error) {
	all, err := i.collect(nil, t, 0, nil)
	if err != nil {
		return nil, err
	}
	var kept []jsonField
	for n, f := range all {
		rivals := rivalsOf(f, all)
		if len(rivals) > 1 {
			return nil, within(all[rivals[1]].goName, no("several fields are called %q", f.name))
		}
		if rivals[0] == n {
			kept = append(kept, f)
		}
	}
	return kept, nil
}

// rivalsOf are the indices of the fields, of all, that have an equal right to the name of
// f.
func rivalsOf(f jsonField, all []jsonField) []int {
	var rivals []int
	for n, o := range all {
		if o.name != f.name {
			continue
		}
		order := 0
		if len(rivals) > 0 {
			best := all[rivals[0]]
			order = cmp.Or(cmp.Compare(o.depth, best.depth), compareBool(best.tagged, o.tagged))
		}
		switch {
		case order < 0:
			rivals = []int{n}
		case order == 0:
			rivals = append(rivals, n)
		}
	}
	return rivals
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func (i *inferrer) collect(list []jsonField, t reflect.Type, depth int, open []reflect.Type) ([]jsonField, error) {
	for sf := range t.Fields() {
		tag := sf.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		inner, isStruct := embedded(sf)
		switch {
		case tag == "-", !sf.IsExported() && (!isStruct || sf.Type.Kind() == reflect.Pointer && name != ""):
			continue
		case isStruct && name == "":
			lent, err := i.embedded(sf, inner, depth+1, open)
			if err != nil {
				return nil, err
			}
			list = append(list, lent...)
			continue
		}
		f := jsonField{goName: sf.Name, typ: sf.Type, name: cmp.Or(name, sf.Name), tagged: name != "", depth: depth}
		f.text, f.described = sf.Tag.Lookup("jsonschema")
		f.optional = sf.Type.Kind() == reflect.Pointer
		for option := range strings.SplitSeq(options, ",") {
			f.optional = f.optional || option == "omitempty" || option == "omitzero"
			f.quoted = f.quoted || option == "string"
		}
		list = append(list, f)
	}
	return list, nil
}

// embedded returns the struct type of a field that is an embedded struct, or a pointer to
// one.
func embedded(sf reflect.StructField) (reflect.Type, bool) {
	t := sf.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t, sf.Anonymous && t.Kind() == reflect.Struct
}

// embedded lists the fields that an embedded struct lends.
func (i *inferrer) embedded(sf reflect.StructField, t reflect.Type, depth int, open []reflect.Type) ([]jsonField, error) {
	if s := i.own[t]; s != nil {
		return lend(t, s, depth)
	}
	if sf.Type.Kind() == reflect.Pointer && !sf.IsExported() {
		return nil, within(sf.Name, no("encoding/json cannot set the embedded %s, which is not exported", sf.Type))
	}
	if len(open) > maxDepth || slices.Contains(open, t) {
		return nil, within(sf.Name, no("type %s contains itself", t))
	}
	return i.collect(nil, t, depth, append(slices.Clip(open), t))
}
