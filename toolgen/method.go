// SPDX-License-Identifier: Apache-2.0

package toolgen

import (
	"cmp"
	"errors"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// A toolset is what one file is generated from: a marked type with its methods.
type toolset struct {
	name     string // of the type
	pos      token.Pos
	receiver string // the name of
	byValue  bool   // no marked method has a pointer as its receiver
	file     *ast.File
	methods  []method
}

// A method is one tool.
type method struct {
	goName, name, description string
	directive                 toolDirective
	params                    []param
	schema                    *schema
	result                    types.Type // nil without a value
	fails                     bool       // it returns an error, too
}

// A param is one parameter: an argument of the tool unless it is handed in.
type param struct {
	name     string
	kind     paramKind
	typ      types.Type
	optional bool
}

type paramKind int

const (
	argument paramKind = iota
	contextParam
	callParam
)

// resolve checks what is marked against its types and gives the toolsets of the types that
// can have methods, in the order of the source.
func resolve(u *unit, m marks, r *reporter) []toolset {
	reportTypeErrors(u, m, r)
	byType := map[string][]markedMethod{}
	for _, mm := range m.methods {
		name := u.receiver(mm.decl)
		byType[name] = append(byType[name], mm)
		if !slices.ContainsFunc(m.types, func(t markedType) bool { return t.spec.Name.Name == name }) {
			r.at(mm.decl.Name.Pos(), "%s is a tool, and its type %s is not marked //fiducial:tools", mm.decl.Name.Name, name)
		}
	}
	var sets []toolset
	for _, t := range m.types {
		name := t.spec.Name.Name
		usable := checkType(u, t, r)
		if usable && len(byType[name]) == 0 {
			r.at(t.spec.Name.Pos(), "type %s has no method marked //fiducial:tool", name)
		}
		set := toolset{name: name, pos: t.spec.Name.Pos(), file: t.file, receiver: firstLetter(name), byValue: true}
		if i := slices.IndexFunc(byType[name], func(m markedMethod) bool { return receiverName(m) != "" }); i >= 0 {
			set.receiver = receiverName(byType[name][i])
		}
		for _, mm := range byType[name] {
			if where, other := constraintOf(u.fset, t.file), constraintOf(u.fset, mm.file); where != other {
				r.at(mm.decl.Name.Pos(), "%s is built under the condition %q and its type under %q: put them under one", mm.decl.Name.Name, other, where)
			}
			set.byValue = set.byValue && !u.hasPointerReceiver(mm.decl)
			set.methods = append(set.methods, resolveMethod(u, mm, r))
		}
		reportSameNames(set, byType[name], r)
		if usable {
			sets = append(sets, set)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byType)) {
		if !slices.ContainsFunc(m.types, func(t markedType) bool { return t.spec.Name.Name == name }) {
			for _, mm := range byType[name] {
				resolveMethod(u, mm, r)
			}
		}
	}
	return sets
}

func receiverName(m markedMethod) string {
	names := m.decl.Recv.List[0].Names
	if len(names) == 0 || names[0].Name == "_" {
		return ""
	}
	return names[0].Name
}

func firstLetter(name string) string {
	for _, r := range name {
		return string(unicode.ToLower(r))
	}
	return "x"
}

// checkType reports a marked type that cannot have tools. Its result is false when
// the type could have no methods of its own.
func checkType(u *unit, t markedType, r *reporter) bool {
	name, pos := t.spec.Name.Name, t.spec.Name.Pos()
	switch {
	case t.spec.Assign.IsValid():
		r.at(pos, "%s is an alias: mark the type that it stands for", name)
		return false
	case t.spec.TypeParams != nil:
		r.at(pos, "%s has type parameters, and what a model sees needs types that are known: mark a type without, such as one that embeds it", name)
		return true
	case !t.spec.Name.IsExported():
		r.at(pos, "type %s is not exported: its tools could not be had from other packages", name)
	}
	obj := u.namedType(name)
	if obj == nil {
		return false // the compiler's error is reported
	}
	named, ok := obj.Type().(*types.Named)
	if !ok {
		return false
	}
	switch under := named.Underlying().(type) {
	case *types.Interface, *types.Pointer:
		r.at(pos, "%s is no type that can have methods", name)
		return false
	case *types.Struct:
		for f := range under.Fields() {
			if f.Name() == "Tools" {
				r.at(f.Pos(), "type %s has a field Tools, and the generated method is called so", name)
			}
		}
	}
	reportToolsElsewhere(u, t, r)
	for f := range named.Methods() {
		if f.Name() == "Tools" {
			r.at(f.Pos(), "type %s has a method Tools, and the generated method is called so", name)
		}
	}
	return true
}

func reportSameNames(set toolset, marked []markedMethod, r *reporter) {
	for i, m := range set.methods {
		first := slices.IndexFunc(set.methods, func(o method) bool { return o.name == m.name })
		if first < i {
			r.at(marked[i].decl.Name.Pos(), "two tools of type %s are called %s: %s and %s", set.name, m.name, set.methods[first].goName, m.goName)
		}
	}
}

func resolveMethod(u *unit, mm markedMethod, r *reporter) method {
	m := method{goName: mm.decl.Name.Name, directive: mm.tool}
	m.name = snake(m.goName)
	if mm.tool.named { // a bad one was reported
		m.name = mm.tool.name
	}
	// E-91 wants a description in any case.
	m.description = cmp.Or(strings.TrimSpace(mm.decl.Doc.Text()), "Tool: "+m.name)
	switch {
	case m.goName == "_":
		r.at(mm.decl.Name.Pos(), "a method called _ cannot be called")
	case !mm.tool.named && !toolName.MatchString(m.name):
		r.at(mm.decl.Name.Pos(), "%s would be a tool called %q: %s; say another with name=", m.goName, m.name, toolNameRule)
	}
	fn, ok := u.info.Defs[mm.decl.Name].(*types.Func)
	if !ok {
		return m // the compiler's error is reported
	}
	sig := fn.Signature()
	m.resolveParams(u, sig, mm, r)
	m.resolveResults(u, sig, mm, r)
	return m
}

func (m *method) resolveParams(u *unit, sig *types.Signature, mm markedMethod, r *reporter) {
	schemas := &mapper{pkg: u.pkg, docs: u.docs, fset: u.fset}
	m.schema = &schema{kind: "object", closed: true}
	for v := range sig.Params().Variables() {
		p := param{name: v.Name(), kind: kindOf(v.Type()), typ: v.Type()}
		m.params = append(m.params, p)
		if p.kind != argument {
			continue
		}
		p.optional = m.resolveParam(u, schemas, v, sig, mm, r)
		m.params[len(m.params)-1] = p
	}
	m.describe(mm, r)
}

// resolveParam adds an argument to the schema and reports whether it is optional.
func (m *method) resolveParam(u *unit, schemas *mapper, v *types.Var, sig *types.Signature, mm markedMethod, r *reporter) bool {
	last := sig.Params().At(sig.Params().Len() - 1)
	switch {
	case v.Name() == "" || v.Name() == "_":
		r.at(v.Pos(), "a parameter of %s has no name, so the model could not say it", m.goName)
		return false
	case !propertyName.MatchString(v.Name()):
		r.at(v.Pos(), "bad parameter name %q: %s", v.Name(), propertyNameRule)
	case sig.Variadic() && v == last:
		r.at(v.Pos(), "parameter %s of %s is variadic, which is not supported: take a slice", v.Name(), m.goName)
		return false
	}
	p, optional := types.Unalias(v.Type()).(*types.Pointer)
	if optional && kindOf(p.Elem()) != argument {
		r.at(v.Pos(), "parameter %s of %s is a pointer: take a %s, which is handed in", v.Name(), m.goName, typeName(u.pkg, p.Elem()))
		return false
	}
	s, err := schemas.parameter(v.Type())
	if err != nil {
		m.reportReasons(u, err, v, mm, r)
		s = &schema{}
	}
	m.schema.field(v.Name(), s, optional)
	return optional
}

// reportReasons reports why a parameter has no schema, and of what stands in one place once.
func (m *method) reportReasons(u *unit, err error, v *types.Var, mm markedMethod, r *reporter) {
	var seen []token.Pos
	for _, err := range reasons(err) {
		pos := placeOf(err, v)
		if slices.Contains(seen, pos) && pos != v.Pos() ||
			isUnknown(err) && (u.hasErrorAt(v.Pos(), mm.decl.End()) || u.comesMissing(pos)) {
			continue
		}
		seen = append(seen, pos)
		r.at(pos, "parameter %s of %s: %v", v.Name(), m.goName, err)
	}
}

// placeOf is where a parameter's mistake is mended: at a field of its struct, or
// at the parameter.
func placeOf(err error, v *types.Var) token.Pos {
	if e, ok := errors.AsType[*unsupported](err); ok && e.pos.IsValid() {
		return e.pos
	}
	return v.Pos()
}

// hasErrorAt reports whether the compiler has something to say about the source
// from start to end, so that we need not.
func (u *unit) hasErrorAt(start, end token.Pos) bool {
	return slices.ContainsFunc(u.errors, func(e types.Error) bool { return start <= e.Pos && e.Pos < end })
}

// comesMissing reports whether an unknown type is of an import that was reported: then the
// compiler has nothing to say about the line itself.
func (u *unit) comesMissing(pos token.Pos) bool {
	line := func(p token.Pos) token.Position {
		at := u.fset.PositionFor(p, false)
		return token.Position{Filename: at.Filename, Line: at.Line}
	}
	return slices.ContainsFunc(u.errors, isImportError) &&
		!slices.ContainsFunc(u.errors, func(e types.Error) bool { return line(e.Pos) == line(pos) })
}

// describe gives the arguments their descriptions.
func (m *method) describe(mm markedMethod, r *reporter) {
	seen := map[string]bool{}
	for _, a := range mm.args {
		name, pos := a.directive.name, a.pos+token.Pos(a.directive.nameCol)
		i := slices.IndexFunc(m.params, func(p param) bool { return p.name == name })
		switch {
		case i < 0 || name == "_":
			r.at(pos, "%s has no parameter %s; its arguments are: %s", m.goName, show(name), cmp.Or(m.argumentNames(), "none"))
		case m.params[i].kind != argument:
			r.at(pos, "parameter %s of %s is handed in and no argument of the model's: it takes no description", name, m.goName)
		case seen[name]:
			r.at(pos, "parameter %s of %s is described twice", name, m.goName)
		default:
			for _, p := range m.schema.props {
				if p.name == name {
					p.schema.description = a.directive.text
				}
			}
		}
		seen[name] = true
	}
}

func (m *method) argumentNames() string {
	var names []string
	for _, p := range m.params {
		if p.kind == argument {
			names = append(names, p.name)
		}
	}
	return strings.Join(names, ", ")
}

func kindOf(t types.Type) paramKind {
	if named, ok := types.Unalias(t).(*types.Named); ok {
		switch fullName(named) {
		case "context.Context":
			return contextParam
		case toolPath + ".Call":
			return callParam
		}
	}
	return argument
}

// resolveResults takes no result, an error, a value, or a value and an error.
func (m *method) resolveResults(u *unit, sig *types.Signature, mm markedMethod, r *reporter) {
	results := sig.Results()
	pos := mm.decl.Name.Pos()
	switch n := results.Len(); {
	case n == 0:
		return
	case n > 2 || n == 2 && !isError(results.At(1).Type()):
		r.at(results.At(0).Pos(), "%s returns %s: a tool returns nothing, an error, a value, or a value and an error", m.goName, typeName(u.pkg, results))
		return
	case isError(results.At(n - 1).Type()):
		m.fails = true
		if n == 1 {
			return
		}
	}
	m.result = results.At(0).Type()
	if results.At(0).Pos().IsValid() {
		pos = results.At(0).Pos()
	}
	if why := unshowable(m.result); why != "" {
		r.at(pos, "%s returns %s: %s", m.goName, typeName(u.pkg, m.result), why)
	}
}

// unshowable says why a result cannot be shown to a model, or nothing.
func unshowable(t types.Type) string {
	if isError(t) {
		return "an error stands last and once"
	}
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		if named, ok := types.Unalias(p.Elem()).(*types.Named); ok && fullName(named) == toolPath+".Output" {
			return "return a tool.Output, not a pointer to one"
		}
	}
	errorType, ok := types.Universe.Lookup("error").Type().Underlying().(*types.Interface)
	if ok && types.Implements(t, errorType) {
		return "it is an error; declare the result as error"
	}
	return inexpressible(t, &[]types.Type{})
}

// inexpressible says which part of a type encoding/json refuses to write. Types
// in seen were looked at.
func inexpressible(t types.Type, seen *[]types.Type) string {
	t = types.Unalias(t)
	if len(*seen) > maxSize || slices.ContainsFunc(*seen, func(o types.Type) bool { return types.Identical(o, t) }) {
		return ""
	}
	*seen = append(*seen, t)
	if writes(t, "MarshalJSON") || writes(t, "MarshalText") {
		return ""
	}
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		return inexpressible(u.Elem(), seen)
	case *types.Slice:
		return inexpressible(u.Elem(), seen)
	case *types.Array:
		return inexpressible(u.Elem(), seen)
	case *types.Map:
		key, ok := u.Key().Underlying().(*types.Basic)
		if !writes(u.Key(), "MarshalText") && (!ok || key.Info()&(types.IsString|types.IsInteger) == 0) {
			return "JSON has no form for keys that are no strings or integers"
		}
		return inexpressible(u.Elem(), seen)
	case *types.Struct:
		for i := range u.NumFields() {
			f := u.Field(i)
			if (!f.Exported() && !f.Embedded()) || strings.HasPrefix(u.Tag(i), `json:"-"`) {
				continue
			}
			if why := inexpressible(f.Type(), seen); why != "" {
				return why + ", in field " + f.Name()
			}
		}
	case *types.Chan, *types.Signature:
		return "JSON has no form for channels and functions"
	case *types.Basic:
		if u.Info()&types.IsComplex != 0 || u.Kind() == types.UnsafePointer {
			return "JSON has no form for complex numbers and unsafe pointers"
		}
	}
	return ""
}

// writes reports whether values of t have a method that writes their JSON or text.
func writes(t types.Type, name string) bool {
	obj, _, _ := types.LookupFieldOrMethod(t, true, nil, name)
	f, ok := obj.(*types.Func)
	return ok && f.Signature().Params().Len() == 0 && f.Signature().Results().Len() == 2
}
