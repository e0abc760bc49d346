package toolgen

import (
	"fmt"
	"go/types"
	"strings"
	"unicode"
)

// names hands out identifiers that nothing else uses.
type names map[string]bool

// namesOf knows what a package declares, what its files import under which name,
// and what Go declares itself.
func namesOf(u *unit) names {
	n := names{"_": true}
	for _, name := range types.Universe.Names() {
		n[name] = true
	}
	for _, name := range u.pkg.Scope().Names() {
		n[name] = true
	}
	for _, f := range u.files {
		if scope := u.info.Scopes[f]; scope != nil {
			for _, name := range scope.Names() {
				n[name] = true
			}
		}
	}
	return n
}

// take returns name, or name with the lowest number that makes it free.
func (n names) take(name string) string {
	free := name
	for i := 2; n[free]; i++ {
		free = fmt.Sprintf("%s%d", name, i)
	}
	n[free] = true
	return free
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
	return strings.TrimLeft(string(runes), "_")
}
