// SPDX-License-Identifier: Apache-2.0

package toolgen

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A mapper finds the JSON Schemas of Go types as encoding/json decodes them.
type mapper struct {
	pkg  *types.Package // whose code is generated
	docs map[token.Pos]*ast.Field
	fset *token.FileSet
	open []types.Type // being mapped, to see cycles
	size int          // how many types were mapped for one parameter
}

// How deep and how big the schema of a parameter may be. No model reads more; a
// generic type can contain ever larger types without containing itself.
const (
	maxDepth = 32
	maxSize  = 2000
)

// An unsupported says why a type has no schema. It names the way to it.
type unsupported struct {
	path, why string
	pos       token.Pos // of the field that is to be changed; none for the parameter
	unknown   bool      // the compiler does not know it either
}

func (e *unsupported) Error() string { return e.why + e.path }

// several are the reasons of the fields of a struct.
type several []error

func (s several) Error() string {
	list := make([]string, len(s))
	for i, err := range s {
		list[i] = err.Error()
	}
	return strings.Join(list, "; ")
}

func (s several) Unwrap() []error { return s }

// reasons are those of which an error is made, or the error alone.
func reasons(err error) []error {
	if list, ok := errors.AsType[several](err); ok {
		return list
	}
	return []error{err}
}

// change returns an error with its reasons changed. Errors that are none stay.
func change(err error, how func(*unsupported)) error {
	if err == nil {
		return nil
	}
	list := slices.Clone(reasons(err))
	for i, err := range list {
		if e, ok := errors.AsType[*unsupported](err); ok {
			changed := *e
			how(&changed)
			list[i] = &changed
		}
	}
	if len(list) == 1 {
		return list[0]
	}
	return several(list)
}

func isUnknown(err error) bool {
	e, ok := errors.AsType[*unsupported](err)
	return ok && e.unknown
}

var errTooBig = errors.New("the type is too big for a schema")

func no(format string, args ...any) error {
	return &unsupported{why: fmt.Sprintf(format, args...)}
}

// parameter returns the schema of a parameter's type.
func (m *mapper) parameter(t types.Type) (*schema, error) {
	m.open, m.size = nil, 0
	return m.schema(t)
}

// schema returns a new schema of t.
func (m *mapper) schema(t types.Type) (*schema, error) {
	t = types.Unalias(t)
	if slices.ContainsFunc(m.open, func(o types.Type) bool { return types.Identical(o, t) }) {
		return nil, no("type %s contains itself", m.name(t))
	}
	if m.size++; len(m.open) > maxDepth || m.size > maxSize {
		return nil, errTooBig
	}
	m.open = append(m.open, t)
	defer func() { m.open = m.open[:len(m.open)-1] }()
	if p, ok := t.(*types.Pointer); ok {
		if _, twice := types.Unalias(p.Elem()).(*types.Pointer); twice {
			return nil, no("%s is a pointer to a pointer, and JSON has one null: take %s", m.name(t), m.name(p.Elem()))
		}
		s, err := m.schema(p.Elem())
		if err == nil {
			s.nullable = true
		}
		return s, err
	}
	if named, ok := t.(*types.Named); ok {
		if s, err := m.named(named); s != nil || err != nil {
			return s, err
		}
	}
	switch {
	case hasMethod(t, "UnmarshalJSON"):
		return nil, no("%s reads JSON in its own way, so its schema is unknown; take a json.RawMessage", m.name(t))
	case hasMethod(t, "UnmarshalText"):
		return &schema{kind: "string"}, nil
	case isString(t):
		return &schema{kind: "string", enum: m.constants(t)}, nil
	}
	return m.underlying(t)
}

// named handles types of the standard library with a JSON form of their own; nil without
// error means that it is no such type.
func (m *mapper) named(t *types.Named) (*schema, error) {
	switch fullName(t) {
	case "time.Time":
		return &schema{kind: "string", format: "date-time"}, nil
	case "time.Duration":
		return nil, no("a time.Duration would be a number of nanoseconds; take the seconds as a number, or a string")
	case "encoding/json.RawMessage":
		return &schema{}, nil
	case "encoding/json.Number":
		return &schema{kind: "number"}, nil
	}
	if strings.HasPrefix(t.Obj().Name(), "_Ctype_") {
		return nil, no("C types are not supported")
	}
	return nil, nil //nolint:nilnil // documented above: neither a schema nor a mistake
}

func (m *mapper) underlying(t types.Type) (*schema, error) {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return m.basic(t, u)
	case *types.Slice:
		if b, ok := u.Elem().Underlying().(*types.Basic); ok && b.Kind() == types.Byte && !hasMethod(u.Elem(), "UnmarshalJSON") && !hasMethod(u.Elem(), "UnmarshalText") {
			return &schema{kind: "string", contentEncoding: "base64"}, nil
		}
		items, err := m.schema(u.Elem())
		return &schema{kind: "array", items: items, length: -1}, within(err, "in the elements of", m.name(t))
	case *types.Array:
		items, err := m.schema(u.Elem())
		return &schema{kind: "array", items: items, length: int(u.Len())}, within(err, "in the elements of", m.name(t))
	case *types.Map:
		return m.mapType(t, u)
	case *types.Struct:
		return m.structType(t, u)
	case *types.Interface:
		if u.Empty() {
			return &schema{}, nil
		}
		return nil, no("%s is an interface, and JSON does not say which type to make", m.name(t))
	}
	return nil, no("JSON has no form for type %s", m.name(t))
}

func (m *mapper) basic(t types.Type, b *types.Basic) (*schema, error) {
	switch b.Name() {
	case "bool":
		return &schema{kind: "boolean"}, nil
	case "string":
		return &schema{kind: "string"}, nil
	case "float32", "float64":
		return &schema{kind: "number"}, nil
	case "int", "int64":
		return &schema{kind: "integer"}, nil
	case "int8":
		return integer(math.MinInt8, math.MaxInt8), nil
	case "int16":
		return integer(math.MinInt16, math.MaxInt16), nil
	case "int32", "rune":
		return integer(math.MinInt32, math.MaxInt32), nil
	case "uint", "uint64":
		return &schema{kind: "integer", minimum: "0"}, nil
	case "uint8", "byte":
		return integer(0, math.MaxUint8), nil
	case "uint16":
		return integer(0, math.MaxUint16), nil
	case "uint32":
		return integer(0, math.MaxUint32), nil
	}
	if b.Kind() == types.Invalid {
		return nil, &unsupported{why: "the type is not known to the compiler", unknown: true}
	}
	return nil, no("JSON has no form for type %s", m.name(t))
}

func integer(lowest, highest int64) *schema {
	return &schema{kind: "integer", minimum: itoa(lowest), maximum: itoa(highest)}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func (m *mapper) mapType(t types.Type, u *types.Map) (*schema, error) {
	s := &schema{kind: "object"}
	switch key := types.Unalias(u.Key()); {
	case hasMethod(key, "UnmarshalText"):
	case isString(key):
		s.names = m.constants(key)
	default:
		return nil, no("%s has keys that are no strings: take map[string]%s", m.name(t), m.name(u.Elem()))
	}
	values, err := m.schema(u.Elem())
	s.values = values
	return s, within(err, "in the values of", m.name(t))
}

// constants are the values of the constants of type t that its package declares,
// in the order of the source, and none of another package's unexported ones.
func (m *mapper) constants(t types.Type) []string {
	named, ok := t.(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return nil
	}
	pkg := named.Obj().Pkg()
	var found []*types.Const
	for _, name := range pkg.Scope().Names() {
		c, ok := pkg.Scope().Lookup(name).(*types.Const)
		if ok && name != "_" && types.Identical(c.Type(), t) && (c.Exported() || pkg == m.pkg) && c.Val().Kind() == constant.String {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b *types.Const) int {
		p, q := m.fset.Position(a.Pos()), m.fset.Position(b.Pos())
		return cmp.Or(cmp.Compare(p.Filename, q.Filename), cmp.Compare(p.Offset, q.Offset), cmp.Compare(a.Name(), b.Name()))
	})
	var values []string
	for _, c := range found {
		if v := constant.StringVal(c.Val()); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}

// name is how a message writes a type: with the packages' names.
func (m *mapper) name(t types.Type) string { return typeName(m.pkg, t) }

func typeName(within *types.Package, t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == within {
			return ""
		}
		return p.Name()
	})
}

// within adds the way to a type to the reason why it has no schema.
func within(err error, where, what string) error {
	return change(err, func(e *unsupported) { e.path = ", " + where + " " + what + e.path })
}

// at adds the place of a field to the reason why its type has no schema. The
// innermost field counts, of those in the package that is generated for: the
// others are not at hand.
func (m *mapper) at(err error, field *types.Var) error {
	if field.Pkg() != m.pkg {
		return err
	}
	return change(err, func(e *unsupported) {
		if !e.pos.IsValid() {
			e.pos = field.Pos()
		}
	})
}

func fullName(t *types.Named) string {
	if t.Obj().Pkg() == nil {
		return t.Obj().Name()
	}
	return t.Obj().Pkg().Path() + "." + t.Obj().Name()
}

func isString(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Kind() == types.String
}

// hasMethod reports whether *t has a method of this name that takes bytes, as the
// readers of encoding and encoding/json do.
func hasMethod(t types.Type, name string) bool {
	if _, isInterface := t.Underlying().(*types.Interface); isInterface {
		return false
	}
	obj, _, _ := types.LookupFieldOrMethod(t, true, nil, name)
	f, ok := obj.(*types.Func)
	if !ok {
		return false
	}
	sig := f.Signature()
	return sig.Params().Len() == 1 && sig.Results().Len() == 1 &&
		types.TypeString(sig.Params().At(0).Type(), nil) == "[]byte" && isError(sig.Results().At(0).Type())
}

func isError(t types.Type) bool { return types.Identical(t, types.Universe.Lookup("error").Type()) }
