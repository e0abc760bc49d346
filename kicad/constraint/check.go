// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/kicad/sch"
)

// A Status is the outcome for one limit.
type Status string

// The statuses. What was not checked is never a pass.
const (
	Pass       Status = "PASS"
	Fail       Status = "FAIL"
	NotChecked Status = "NOT CHECKED"
)

// A Result says whether a limit holds.
type Result struct {
	Key     string   `json:"key"`
	Limit   string   `json:"limit"` // in words; the text of a constraint without limits
	Status  Status   `json:"status"`
	Figures string   `json:"figures"`         // what was compared, or why nothing was
	Items   []string `json:"items,omitempty"` // the parts or pins that break it
}

// String is the result in one line.
func (r Result) String() string {
	return fmt.Sprintf("%s %s: %s: %s", r.Status, r.Key, r.Limit, r.Figures)
}

// Check holds the limits of a registry against the design. Fields come from the symbols, else from the tables of parts
// of the documents. A constraint without limits is NOT CHECKED. A nil registry has no results.
func Check(r *Registry, d *docs.Design, documents []*docs.Document) []Result {
	if r == nil {
		return nil
	}
	c := checker{d: d, rows: docs.Listings(d, documents)}
	var results []Result
	for _, con := range r.Constraints {
		if len(con.Limits) == 0 {
			results = append(results, Result{Key: con.Key, Limit: con.Text, Status: NotChecked, Figures: "it is for people to check"})
		}
		for _, l := range con.Limits {
			res := c.limit(l)
			res.Key, res.Limit = con.Key, l.String()
			results = append(results, res)
		}
	}
	return results
}

type checker struct {
	d    *docs.Design
	rows map[string][]docs.Listing
}

func (c checker) limit(l Limit) Result {
	switch l.Kind {
	case Sum:
		return c.sum(l)
	case Range:
		return c.each(l, func(p docs.Part, text string) (string, bool) {
			q, ok := docs.ParseQuantity(text)
			if !ok {
				return "", false
			}
			why, _ := l.Against(q)
			return why, true
		})
	case Field:
		return c.each(l, func(_ docs.Part, text string) (string, bool) {
			same := docs.SameValue
			if strings.EqualFold(l.Field, "footprint") {
				same = docs.SameFootprint
			}
			if slices.ContainsFunc(l.Is, func(is string) bool { return same(is, text) }) {
				return "", true
			}
			return text + " is not " + strings.Join(l.Is, " or "), true
		})
	case Count:
		return c.count(l)
	case OnNet, ForbiddenNet, OpenPin:
		return c.pins(l)
	}
	return Result{Status: NotChecked, Figures: "this kind of limit is not known"}
}

// parts are the parts that a limit is about.
func (c checker) parts(l Limit) []docs.Part {
	var list []docs.Part
	for _, p := range c.d.Parts {
		if anyMatches(l.Parts, p.Ref) {
			list = append(list, p)
		}
	}
	return list
}

// field is a property of a part, "" when nothing tells it.
func (c checker) field(p docs.Part, name string) string {
	switch strings.ToLower(name) {
	case "value":
		return p.Value
	case "footprint":
		return p.Footprint
	}
	if text := p.Field(name); text != "" {
		return text
	}
	for _, row := range c.rows[p.Ref] {
		if text := row.Cell(name); text != "" {
			return text
		}
	}
	return ""
}

func none(what []string) Result {
	return Result{Status: NotChecked, Figures: "the design has no " + strings.Join(what, ", ")}
}

// sum adds a field up. A part without it keeps a sum from passing, but not from being over the most already.
func (c checker) sum(l Limit) Result {
	var total docs.Quantity
	var terms, lacking []string
	exact := slices.ContainsFunc(l.Parts, func(p string) bool { return p != "*" })
	for _, p := range c.parts(l) {
		if p.DNP {
			continue
		}
		text := c.field(p, l.Field)
		q, ok := docs.ParseQuantity(text)
		switch {
		case text == "" && !exact: // of all parts those that have the field are meant
		case !ok:
			lacking = append(lacking, p.Ref)
		case total.Unit != "" && q.Unit != "" && q.Unit != total.Unit:
			return Result{Status: NotChecked, Figures: fmt.Sprintf("%s has %s in another unit than the others: %s", p.Ref, l.Field, text)}
		default:
			total.Value += q.Value
			if q.Unit != "" {
				total.Unit = q.Unit
			}
			terms = append(terms, p.Ref+" "+text)
		}
	}
	if len(terms) == 0 {
		return none([]string{"part " + strings.Join(l.Parts, ", ") + " with a quantity in " + l.Field})
	}
	why, ok := l.Against(total)
	res := Result{Status: Pass, Figures: fmt.Sprintf("%s = %s", strings.Join(terms, " + "), total)}
	switch {
	case !ok && (len(lacking) == 0 || strings.Contains(why, "over the most")):
		res.Status, res.Figures, res.Items = Fail, why+" ("+res.Figures+")", refs(terms)
	case len(lacking) > 0:
		res.Status = NotChecked
	}
	if len(lacking) > 0 {
		res.Figures += fmt.Sprintf("; %s has no quantity in %s", strings.Join(lacking, ", "), l.Field)
	}
	return res
}

func refs(terms []string) []string {
	list := make([]string, 0, len(terms))
	for _, t := range terms {
		ref, _, _ := strings.Cut(t, " ")
		list = append(list, ref)
	}
	return list
}

// each looks at a field of each part. is says why a text breaks the limit, and false when it cannot be compared.
func (c checker) each(l Limit, is func(docs.Part, string) (why string, known bool)) Result {
	var broken, lacking, fine, items []string
	for _, p := range c.parts(l) {
		text := c.field(p, l.Field)
		why, known := "", false
		if text != "" {
			why, known = is(p, text)
		}
		switch {
		case !known:
			lacking = append(lacking, p.Ref)
		case why != "":
			broken = append(broken, p.Ref+": "+why)
			items = append(items, p.Ref)
		default:
			fine = append(fine, p.Ref+" "+text)
		}
	}
	switch {
	case len(broken) > 0:
		return Result{Status: Fail, Figures: strings.Join(broken, "; "), Items: items}
	case len(lacking) > 0:
		return Result{Status: NotChecked, Figures: fmt.Sprintf("%s has nothing to compare in %s", strings.Join(lacking, ", "), l.Field)}
	case len(fine) == 0:
		return none([]string{"part " + strings.Join(l.Parts, ", ")})
	}
	return Result{Status: Pass, Figures: strings.Join(fine, ", ")}
}

func (c checker) count(l Limit) Result {
	var found []string
	for _, p := range c.parts(l) {
		if !p.DNP {
			found = append(found, p.Ref)
		}
	}
	q := docs.Quantity{Value: float64(len(found))}
	if why, ok := l.Against(q); !ok {
		return Result{Status: Fail, Figures: why, Items: found}
	}
	return Result{Status: Pass, Figures: q.String()}
}

// pins looks at what pins are connected to.
func (c checker) pins(l Limit) Result {
	var broken, fine, items, unknown []string
	for _, pattern := range l.Pins {
		ref, pin, _ := strings.Cut(pattern, ".")
		found := false
		for _, p := range c.d.Parts {
			if !matches(ref, p.Ref) {
				continue
			}
			for _, have := range p.Pins {
				if !matches(pin, have.Number) && !matches(pin, have.Name) {
					continue
				}
				found = true
				name := p.Ref + "." + have.Number
				if why := c.pin(l, have); why != "" {
					broken, items = append(broken, name+" is "+why), append(items, name)
				} else {
					fine = append(fine, name+" "+netWords(have))
				}
			}
		}
		if !found {
			unknown = append(unknown, pattern)
		}
	}
	switch {
	case len(broken) > 0:
		return Result{Status: Fail, Figures: strings.Join(broken, "; "), Items: items}
	case len(unknown) > 0:
		return none([]string{"pin " + strings.Join(unknown, ", ")})
	}
	return Result{Status: Pass, Figures: strings.Join(fine, ", ")}
}

func netWords(p docs.Pin) string {
	if p.Open() {
		return "open"
	}
	return sch.Plain(p.Net)
}

// pin says how a pin breaks a limit, "" when it does not.
func (c checker) pin(l Limit, pin docs.Pin) string {
	switch l.Kind {
	case OpenPin:
		if !pin.Open() {
			return "on " + netWords(pin) + " and must be open"
		}
	case OnNet:
		if !onNet(l.Nets, pin, c.d.IsNet) {
			return "on " + netWords(pin) + " and must be on " + strings.Join(l.Nets, " or ")
		}
	case ForbiddenNet:
		if onNet(l.Nets, pin, c.d.MayBeNet) {
			return "on " + netWords(pin) + ", which is forbidden"
		}
	case Sum, Range, Field, Count:
	}
	return ""
}

func onNet(nets []string, pin docs.Pin, is func(docs.Pin, string) bool) bool {
	return slices.ContainsFunc(nets, func(n string) bool {
		if strings.ContainsAny(n, "*?") {
			return !pin.Open() && matches(n, sch.Plain(pin.Net))
		}
		return is(pin, n)
	})
}
