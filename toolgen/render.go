// SPDX-License-Identifier: Apache-2.0

package toolgen

import (
	"bytes"
	"fmt"
	"go/format"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const fileSuffix = "_tools.go"

// A File is one generated file.
type File struct {
	Path string // absolute
	Data []byte // nil for a file of an earlier run that is no longer made
}

// render writes the files of a package.
func render(u *unit, sets []toolset) ([]File, error) {
	declared, imported := declaredIn(u), importedIn(u)
	elsewhere, importedElsewhere := namesElsewhere(u.elsewhere)
	maps.Copy(imported, importedElsewhere)
	var files []File
	for _, set := range sets {
		w := writer{unit: u, set: set, declared: declared, imported: imported, elsewhere: elsewhere, imports: map[string]string{}, local: names{}}
		data, err := w.file()
		if err != nil {
			return nil, err
		}
		files = append(files, File{Path: u.place(set), Data: data})
	}
	return files, nil
}

// place is the path of a set's file. It is named for the type, and for the platform when
// the type's file is named for one.
func (u *unit) place(set toolset) string {
	parts := append([]string{snake(set.name)}, nameTags(u.fset.File(set.file.FileStart).Name())...)
	return filepath.Join(u.dir, strings.Join(parts, "_")+fileSuffix)
}

// A writer writes one file.
type writer struct {
	unit      *unit
	set       toolset
	declared  names             // in the package, what is generated included
	imported  names             // by other files, those elsewhere included
	elsewhere names             // declared in tests and on other platforms
	local     names             // in this file
	imports   map[string]string // path to name
	paths     []string          // of imports
	body      bytes.Buffer
}

func (w *writer) printf(format string, args ...any) { fmt.Fprintf(&w.body, format, args...) }

func (w *writer) file() ([]byte, error) {
	w.set.receiver = w.free(w.set.receiver)
	tool := w.importName(toolPath, "tool")
	argNames := make([]string, len(w.set.methods))
	schemaNames := make([]string, len(w.set.methods))
	for i, m := range w.set.methods {
		base := lowerCamel(camel(w.set.name)) + upperFirst(camel(m.goName))
		schemaNames[i] = w.declared.take(base+"Schema", w.imported, w.elsewhere, w.local)
		argNames[i] = "struct{}"
		if len(m.schema.props) > 0 {
			argNames[i] = w.declared.take(base+"Args", w.imported, w.elsewhere, w.local)
			w.argStruct(argNames[i], m)
		}
		w.printf("const %s = `%s`\n\n", schemaNames[i], m.schema.json())
	}
	w.toolsMethod(tool, argNames, schemaNames)

	var out bytes.Buffer
	fmt.Fprintf(&out, "%s\n\n", header)
	if c := constraintOf(w.unit.fset, w.set.file); c != "" {
		fmt.Fprintf(&out, "//go:build %s\n\n", c)
	}
	fmt.Fprintf(&out, "package %s\n\n", w.unit.pkg.Name())
	w.writeImports(&out)
	fmt.Fprintf(&out, "// When this name is unknown, the generator and the module do not fit: update both\n// to one version and run go generate again.\n")
	fmt.Fprintf(&out, "const _ = %s.GeneratedV1\n\n", tool)
	out.Write(w.body.Bytes())
	data, err := format.Source(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("toolgen: the code for type %s of %s is not Go, which is a defect of the generator: %w", w.set.name, w.unit.dir, err)
	}
	return data, nil
}

func (w *writer) argStruct(name string, m method) {
	w.printf("// %s are the arguments of %s.\ntype %s struct {\n", name, m.name, name)
	fields := names{}
	for _, p := range m.params {
		if p.kind != argument {
			continue
		}
		tag := p.name
		if p.optional {
			tag += ",omitempty"
		}
		w.printf("\t%s %s `json:%q`\n", fields.take(fieldName(p.name)), w.spell(p.typ), tag)
	}
	w.printf("}\n\n")
}

func (w *writer) toolsMethod(tool string, argNames, schemaNames []string) {
	f := w.set.receiver
	ctx, call, in := w.free("ctx"), w.free("call"), w.free("in")
	context, raw := w.importName("context", "context"), w.importName("encoding/json", "json")
	w.printf("// Tools are the methods of %s that a model can call, in the order of the source.\n", f)
	star := "*"
	if w.set.byValue {
		star = ""
	}
	w.printf("func (%s %s%s) Tools() []%s.Tool {\n\treturn []%s.Tool{\n", f, star, w.set.name, tool, tool)
	for i, m := range w.set.methods {
		w.printf("%s.Generated(\n%s.Spec{\nName: %q,\nDescription: %s,\nSchema: %s.RawMessage(%s),\n},\n", tool, tool, m.name, quoteLines(m.description), raw, schemaNames[i])
		w.printf("%s.Traits{%s},\n", tool, traits(m.directive))
		usesCtx, usesCall := "_", "_"
		var args []string
		fields := names{}
		for _, p := range m.params {
			switch p.kind {
			case contextParam:
				usesCtx = ctx
				args = append(args, ctx)
			case callParam:
				usesCall = call
				args = append(args, call)
			case argument:
				args = append(args, in+"."+fields.take(fieldName(p.name)))
			}
		}
		usesIn := "_"
		if len(m.schema.props) > 0 {
			usesIn = in
		}
		out := tool + ".Output"
		if m.result != nil {
			out = w.spell(m.result)
		}
		w.printf("func(%s %s.Context, %s %s.Call, %s %s) (%s, error) {\n", usesCtx, context, usesCall, tool, usesIn, argNames[i], out)
		w.printf("%s\n},\n),\n", m.invoke(fmt.Sprintf("%s.%s(%s)", f, m.goName, strings.Join(args, ", ")), tool))
	}
	w.printf("\t}\n}\n")
}

// invoke is the body of a tool's function.
func (m method) invoke(expr, tool string) string {
	done := tool + `.Output{Summary: "done"}`
	switch {
	case m.result != nil && m.fails:
		return "return " + expr
	case m.result != nil:
		return "return " + expr + ", nil"
	case m.fails:
		return "return " + done + ", " + expr
	}
	return expr + "\nreturn " + done + ", nil"
}

func traits(d toolDirective) string {
	var list []string
	for _, t := range []struct {
		set  bool
		name string
	}{{d.readOnly, "ReadOnly"}, {d.idempotent, "Idempotent"}, {d.exclusive, "Exclusive"}} {
		if t.set {
			list = append(list, t.name+": true")
		}
	}
	return strings.Join(list, ", ")
}

// free is a name for something local to a function. It may hide what only files
// elsewhere declare, which the generated code does not use.
func (w *writer) free(name string) string { return w.local.take(name, w.declared) }

// importName imports a package, once, and returns its name in this file.
func (w *writer) importName(path, name string) string {
	if as, ok := w.imports[path]; ok {
		return as
	}
	as := w.local.take(name, w.declared, w.elsewhere)
	w.imports[path] = as
	w.paths = append(w.paths, path)
	return as
}

// spell writes a type in this file.
func (w *writer) spell(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == w.unit.pkg {
			return ""
		}
		return w.importName(p.Path(), p.Name())
	})
}

// writeImports writes the standard library's, then the others'.
func (w *writer) writeImports(out *bytes.Buffer) {
	slices.Sort(w.paths)
	std := func(path string) bool { first, _, _ := strings.Cut(path, "/"); return !strings.Contains(first, ".") }
	out.WriteString("import (\n")
	for _, group := range []bool{true, false} {
		if !group {
			out.WriteByte('\n')
		}
		for _, path := range w.paths {
			if std(path) != group {
				continue
			}
			if name := w.imports[path]; name != lastElement(path) {
				fmt.Fprintf(out, "\t%s %q\n", name, path)
			} else {
				fmt.Fprintf(out, "\t%q\n", path)
			}
		}
	}
	out.WriteString(")\n\n")
}

func lastElement(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// quoteLines writes a string with a line of source for each of its lines.
func quoteLines(s string) string {
	var parts []string
	for line := range strings.Lines(s) {
		parts = append(parts, strconv.Quote(line))
	}
	return strings.Join(parts, " +\n")
}
