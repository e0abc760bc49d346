// SPDX-License-Identifier: Apache-2.0

package library

import (
	"cmp"
	"context"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// A Query says what to look for. At least one of Words and Pattern must be given, unless a Library is: then all of it
// is listed.
type Query struct {
	// Words must all be found, in any case, in a symbol's name, keywords, description, footprint filters or library.
	// A word with * or ? is a pattern for the whole name.
	Words string
	// Pattern is a regular expression (https://pkg.go.dev/regexp/syntax) for name, keywords, description or filters, in any case.
	Pattern string
	// Library limits the search to one library; empty means all.
	Library string
	// Limit is how many matches are returned; 0 means 20.
	Limit int
}

// DefaultLimit is the limit of a query that names none.
const DefaultLimit = 20

// A Result is what a search found.
type Result struct {
	Matches   []Symbol // the best first
	Total     int      // how many there are beyond the limit as well
	Libraries int      // how many were searched
	// Problems are libraries that were not searched, or not to their end, and why.
	Problems []string
}

// Search looks for symbols. Errors: BadQuery, NoLibraries, NoSuchLibrary, Unreadable for a library that was named, and
// the end of ctx.
func (s *Set) Search(ctx context.Context, q Query) (Result, error) {
	m, err := q.matcher()
	if err != nil {
		return Result{}, err
	}
	var res Result
	libraries, err := s.choose(q.Library, &res)
	if err != nil {
		return res, err
	}
	best := &best{limit: cmp.Or(max(q.Limit, 0), DefaultLimit)}
	if err := s.each(ctx, libraries, func(l Library, x *index, err error) {
		if err != nil {
			res.Problems = append(res.Problems, err.Error())
			return
		}
		res.Libraries++
		if x.problem != "" {
			res.Problems = append(res.Problems, x.problem)
		}
		for _, e := range x.entries {
			e.Library = l.Name // two tables may name one file
			if score, ok := m.score(e.Symbol); ok {
				res.Total++
				best.add(e.Symbol, score)
			}
		}
	}); err != nil {
		return res, err
	}
	res.Matches = best.symbols()
	slices.Sort(res.Problems)
	if res.Libraries == 0 {
		if q.Library != "" {
			return res, &Error{Kind: Unreadable, Detail: strings.Join(res.Problems, "; ")}
		}
		return res, s.none("symbol", s.symbols)
	}
	return res, nil
}

// choose lists the libraries to be searched, those that cannot be read go to the problems.
func (s *Set) choose(name string, res *Result) ([]Library, error) {
	if name != "" {
		l, err := s.named("symbol", name, s.symbols)
		return []Library{l}, err
	}
	var list []Library
	for _, l := range s.symbols {
		if l.Problem != "" {
			res.Problems = append(res.Problems, l.Name+": "+l.Problem)
			continue
		}
		list = append(list, l)
	}
	if len(list) == 0 {
		return nil, s.none("symbol", s.symbols)
	}
	return list, nil
}

// each reads libraries side by side and hands them to do, one at a time.
func (s *Set) each(ctx context.Context, list []Library, do func(Library, *index, error)) error {
	work := make(chan Library)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range min(runtime.NumCPU(), len(list)) {
		wg.Go(func() {
			for l := range work {
				x, err := s.index(l)
				mu.Lock()
				do(l, x, err)
				mu.Unlock()
			}
		})
	}
	for _, l := range list {
		if ctx.Err() != nil {
			break
		}
		work <- l
	}
	close(work)
	wg.Wait()
	return context.Cause(ctx)
}

type matcher struct {
	words   []string // in lower case
	names   []*regexp.Regexp
	pattern *regexp.Regexp
}

func (q Query) matcher() (matcher, error) {
	var m matcher
	for w := range strings.FieldsSeq(strings.ToLower(q.Words)) {
		if !strings.ContainsAny(w, "*?") {
			m.words = append(m.words, w)
			continue
		}
		expr := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(w))
		m.names = append(m.names, regexp.MustCompile("(?i)^"+expr+"$"))
	}
	if q.Pattern != "" {
		re, err := regexp.Compile("(?i)" + q.Pattern)
		if err != nil {
			return m, &Error{Kind: BadQuery, Detail: "the expression cannot be understood", Err: err}
		}
		m.pattern = re
	}
	if len(m.words)+len(m.names) == 0 && m.pattern == nil && q.Library == "" {
		return m, &Error{Kind: BadQuery, Detail: "nothing to look for: give words, an expression or a library"}
	}
	return m, nil
}

// named reports whether a name fits all patterns for names.
func (m matcher) named(name string) bool {
	return !slices.ContainsFunc(m.names, func(re *regexp.Regexp) bool { return !re.MatchString(name) })
}

// score tells whether a symbol matches, and how well.
func (m matcher) score(s Symbol) (int, bool) {
	if !m.named(s.Name) {
		return 0, false
	}
	total := 40 * len(m.names)
	if p := m.pattern; p != nil {
		switch {
		case p.MatchString(s.Name):
			total += 40
		case p.MatchString(s.Keywords) || p.MatchString(s.Description) || slices.ContainsFunc(s.Filters, p.MatchString):
			total += 10
		default:
			return 0, false
		}
	}
	if len(m.words) == 0 {
		return total, true
	}
	name, keywords, description := strings.ToLower(s.Name), strings.ToLower(s.Keywords), strings.ToLower(s.Description)
	for _, w := range m.words {
		n := 0
		switch {
		case name == w || strings.ToLower(s.Library)+":"+name == w:
			n = 100
		case strings.HasPrefix(name, w):
			n = 50
		case strings.Contains(name, w):
			n = 30
		}
		switch {
		case slices.Contains(strings.Fields(keywords), w):
			n += 20
		case strings.Contains(keywords, w):
			n += 10
		}
		if strings.Contains(description, w) {
			n += 10
		}
		if n == 0 && (strings.Contains(strings.ToLower(s.Library), w) || strings.Contains(strings.ToLower(strings.Join(s.Filters, " ")), w)) {
			n = 5
		}
		if n == 0 {
			return 0, false
		}
		total += n
	}
	return total, true
}

// best keeps the best matches.
type best struct {
	limit int
	list  []scored
}

type scored struct {
	Symbol
	score int
}

func (b *best) add(s Symbol, score int) {
	b.list = append(b.list, scored{s, score})
	if len(b.list) > 2*b.limit+100 {
		b.cut()
	}
}

func (b *best) cut() {
	slices.SortFunc(b.list, func(x, y scored) int {
		return cmp.Or(cmp.Compare(y.score, x.score), cmp.Compare(len(x.Name), len(y.Name)), cmp.Compare(x.ID(), y.ID()))
	})
	b.list = b.list[:min(len(b.list), b.limit)]
}

func (b *best) symbols() []Symbol {
	b.cut()
	list := make([]Symbol, 0, len(b.list))
	for _, s := range b.list {
		list = append(list, s.Symbol)
	}
	return list
}
