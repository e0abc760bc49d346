// SPDX-License-Identifier: Apache-2.0

// Package toolgen writes the code that makes a type's methods into tools that a
// model can call. The command fiducialgen runs it; directives in the source say
// what it does:
//
//	//fiducial:tools
//	type Files struct{ root *os.Root }
//
//	// Read returns the text of a file.
//	//
//	//fiducial:tool readonly
//	//fiducial:arg path repo-relative path of the file
//	func (f *Files) Read(ctx context.Context, path string, lines *int) (string, error)
//
// gives files_tools.go with an argument struct, a JSON Schema and the method
// Tools, which returns a tool named read. Its receiver is a value when those of all
// marked methods are, else a pointer.
//
// # Directives
//
// They stand in doc comments, without a space behind the slashes, one a line. What looks
// like one there and is none, as by a misspelled word or a space, is a mistake.
//
//   - //fiducial:tools marks a type.
//   - //fiducial:tool [name=NAME] [readonly] [idempotent] [exclusive] marks a method
//     of a marked type. The tool's name is the method's in snake case (ReadFile:
//     read_file, HTTPServer: http_server) unless name says another; the doc comment
//     is its description.
//   - //fiducial:arg NAME TEXT describes a parameter of a marked method.
//
// # Parameters
//
// Every parameter is a property of the schema, under its own name, but for those
// of type context.Context and tool.Call, which are handed in wherever they stand.
// A pointer is optional, and null counts as absent. Numbers, strings, booleans,
// slices, arrays, maps, structs, any, time.Time (RFC 3339), []byte (base64),
// json.RawMessage (any JSON), json.Number and types that read themselves from
// text are understood; a string type with constants becomes an enumeration. In a
// struct, as encoding/json sees it, fields are optional when they are pointers or
// their tag says omitempty or omitzero; a field's description is its
// `jsonschema:"..."` tag, as in [tool.New], or else its comment.
//
// # Results
//
// A method returns nothing, an error, a value, or a value and an error. A string
// is shown as it is, a tool.Output too, any other value as JSON, and no value as
// "done".
//
// [tool.New]: https://pkg.go.dev/github.com/fiducial-dev/fiducial/tool#New
package toolgen
