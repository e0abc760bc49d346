// SPDX-License-Identifier: Apache-2.0

package toolgen

import (
	"fmt"
	"go/types"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// names are identifiers that are taken.
type names map[string]bool

// take returns name, or name with the lowest number behind it that neither n nor
// others have, and adds it to n.
func (n names) take(name string, others ...names) string {
	free := name
	for i := 2; n[free] || slices.ContainsFunc(others, func(o names) bool { return o[free] }); i++ {
		free = fmt.Sprintf("%s%d", name, i)
	}
	n[free] = true
	return free
}

// declaredIn are the names that a package and Go itself declare.
func declaredIn(u *unit) names {
	n := names{"_": true}
	for _, name := range slices.Concat(types.Universe.Names(), u.pkg.Scope().Names()) {
		n[name] = true
	}
	return n
}

// importedIn are the names under which the files of a package import others. The
// package may not declare them.
func importedIn(u *unit) names {
	n := names{}
	for _, f := range u.files {
		if scope := u.info.Scopes[f]; scope != nil {
			for _, name := range scope.Names() {
				n[name] = true
			}
		}
	}
	return n
}

// camel takes the underscores out of a name: get_some gives getSome.
func camel(name string) string {
	first, rest, _ := strings.Cut(strings.TrimLeft(name, "_"), "_")
	var b strings.Builder
	b.WriteString(first)
	for part := range strings.SplitSeq(rest, "_") {
		b.WriteString(upperFirst(part))
	}
	return b.String()
}

func upperFirst(name string) string {
	_, size := utf8.DecodeRuneInString(name)
	return strings.ToUpper(name[:size]) + name[size:]
}

// fieldName is the name of an argument struct's field for a parameter.
func fieldName(param string) string {
	name := upperFirst(camel(param))
	if first, _ := utf8.DecodeRuneInString(name); !unicode.IsUpper(first) {
		name = "Arg" + name
	}
	return name
}

// lowerCamel makes an exported identifier an unexported one: HTTPServer gives
// httpServer.
func lowerCamel(name string) string {
	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsUpper(r) || i > 0 && i+1 < len(runes) && unicode.IsLower(runes[i+1]) {
			break
		}
		runes[i] = unicode.ToLower(r)
	}
	return string(runes)
}
