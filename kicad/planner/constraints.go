// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/constraint"
)

var (
	registryLine = regexp.MustCompile(`(?m)^Constraints of (.+)$`)
	documentLine = regexp.MustCompile(`(?m)^Document (.+)$`)
)

// registryFile is where the prompt says that the constraints stand, "" when it says nothing of any. What follows in
// the prompt are documents, which may say anything.
func registryFile(system string) string {
	own, _, _ := strings.Cut(system, "\nDocument ")
	if m := registryLine.FindStringSubmatch(own); m != nil {
		return m[1]
	}
	return ""
}

// paper is a document of the project by its name.
func (p plan) paper(name string) string {
	if file := registryFile(p.system); file != "" {
		return path.Join(path.Dir(file), name)
	}
	if m := documentLine.FindStringSubmatch(p.system); m != nil {
		return path.Join(path.Dir(m[1]), name)
	}
	return path.Join("docs", name)
}

// registry is the constraints as they stand, with those that the requests before this one add. whole is false when
// the file could not be read to its end.
func (p plan) registry() (r constraint.Registry, whole bool) {
	whole = true
	if file := registryFile(p.system); file != "" {
		text, all := p.document(file)
		read, err := constraint.Read(file, []byte(text))
		if whole = all && err == nil; whole {
			r = *read
		} else {
			r.Constraints = promised(p.system)
		}
	}
	r.Constraints = append(slices.Clone(r.Constraints), p.added...)
	return r, whole
}

var promptLine = regexp.MustCompile(`(?m)^- ([A-Za-z0-9][\w.-]{0,62}): (.+)$`)

// promised are the constraints as the prompt tells them, key and text alone.
func promised(system string) (all []constraint.Constraint) {
	own, _, _ := strings.Cut(system, "\nDocument ")
	at := registryLine.FindStringIndex(own)
	if at == nil {
		return nil
	}
	for _, m := range promptLine.FindAllStringSubmatch(own[at[1]:], -1) {
		all = append(all, constraint.Constraint{Key: m[1], Text: m[2]})
	}
	return all
}

// constraint is the one that is to be recorded, or why none is.
func (p plan) constraint() (constraint.Constraint, obstacle) {
	r, whole := p.registry()
	if p.kind == changeConstraint {
		if !whole {
			return constraint.Constraint{}, blocked("%s cannot be read here to its end, so that no constraint is changed in it. Nothing was changed.", registryFile(p.system))
		}
		return p.changed(r)
	}
	c := constraint.Constraint{Key: p.key, Text: p.text, Limits: limits(p.text), Source: p.why, Affects: items(p.affects)}
	if c.Source == "" {
		c.Source = "the request"
	}
	var keys []string
	for _, have := range r.Constraints {
		keys = append(keys, have.Key)
		switch {
		case strings.EqualFold(oneLine(have.Text), oneLine(c.Text)):
			return c, already("constraint %s says %q", have.Key, have.Text)
		case strings.EqualFold(have.Key, c.Key):
			return c, blocked("constraint %s exists: %s. To change it: change constraint %s to ... because ... Nothing was changed.", have.Key, have.Text, have.Key)
		case c.Key == "" && slug(have.Text) == slug(c.Text):
			return c, blocked("constraint %s is about the same: %s. To change it: change constraint %s to ... because ... To have both, give the new one a name: add a constraint called NAME: ... Nothing was changed.", have.Key, have.Text, have.Key)
		}
	}
	if c.Key == "" {
		c.Key = nextKey(keys, c.Text)
	}
	return c, obstacle{}
}

// changed is the constraint that is meant, with its new text and limits.
func (p plan) changed(r constraint.Registry) (constraint.Constraint, obstacle) {
	c, o := p.pick(r)
	if o.text != "" {
		return c, o
	}
	was := c.Text
	b, isBound := boundOf(p.text)
	switch old, at, bounded1 := find(was); {
	case isBound && !bounded1:
		return c, blocked("constraint %s says %q, which has no bound that %q could replace. Say the whole constraint: change constraint %s to \"...\" because ... Nothing was changed.", c.Key, was, p.text, c.Key)
	case isBound:
		if q, ok := quantityAlone(p.text); ok { // 15 mA instead of at most 20 mA
			switch {
			case old.min != "" && old.max != "":
				return c, blocked("constraint %s says %s, and %s may be either end. Say which: at least, at most, or from ... to ... Nothing was changed.", c.Key, old, q)
			case old.min != "":
				b = bound{min: q}
			}
		}
		c.Text = strings.TrimSpace(was[:at]) + " " + b.String()
		if now, ok := bounded(c.Limits, b); ok {
			c.Limits = now
		} else if len(c.Limits) == 0 {
			c.Limits = limits(c.Text)
		} else {
			return c, blocked("constraint %s has limits that are checked (%s), and it is not clear which of them %s is. Change it in %s. Nothing was changed.", c.Key, limitList(c), p.text, registryFile(p.system))
		}
	default:
		c.Text = p.text
		now := limits(c.Text)
		if len(c.Limits) > 0 && len(now) == 0 {
			return c, blocked("constraint %s has limits that are checked (%s), and none can be read from %q. Say the bound alone, or change it in %s. Nothing was changed.", c.Key, limitList(c), p.text, registryFile(p.system))
		}
		c.Limits = now
	}
	if oneLine(c.Text) == oneLine(was) {
		return c, already("constraint %s says %q", c.Key, was)
	}
	if p.affects != "" {
		c.Affects = items(p.affects)
	}
	return c, obstacle{}
}

func limitList(c constraint.Constraint) string {
	var all []string
	for _, l := range c.Limits {
		all = append(all, l.String())
	}
	return strings.Join(all, "; ")
}

// pick finds the constraint that a request names: by its key, else by words that only one of them has.
func (p plan) pick(r constraint.Registry) (constraint.Constraint, obstacle) {
	var keys []string
	for _, c := range r.Constraints {
		keys = append(keys, c.Key)
		if strings.EqualFold(c.Key, p.key) {
			return c, obstacle{}
		}
	}
	var fits []constraint.Constraint
	for _, c := range r.Constraints {
		have := strings.ToLower(c.Key + " " + c.Text)
		if !slices.ContainsFunc(strings.Fields(strings.ToLower(p.key)), func(w string) bool { return !hasWord(have, strings.TrimSuffix(w, "'s")) }) {
			fits = append(fits, c)
		}
	}
	switch len(fits) {
	case 1:
		return fits[0], obstacle{}
	case 0:
		return constraint.Constraint{}, blocked("there is no constraint %s.%s The constraints are: %s. Nothing was changed.", cutName(p.key, 80), meant(p.key, keys), some(keys))
	}
	var list []string
	for _, c := range fits {
		list = append(list, fmt.Sprintf("%s (%s)", c.Key, cutName(c.Text, 80)))
	}
	return constraint.Constraint{}, blocked("several constraints may be meant by %q: %s. Name one by its key. Nothing was changed.", p.key, some(list))
}

func hasWord(text, w string) bool {
	return regexp.MustCompile(`(^|[^\p{L}\p{N}])` + regexp.QuoteMeta(w) + `($|[^\p{L}\p{N}])`).MatchString(text)
}

// record is what a request about the records calls.
func (p plan) record() []recordCall {
	switch p.kind {
	case addConstraint, changeConstraint:
		c, _ := p.constraint()
		a := args{"key": c.Key, "text": c.Text, "source": c.Source}
		if len(c.Limits) > 0 {
			a["limits"] = c.Limits
		}
		if c.Document != "" {
			a["document"] = c.Document
		}
		if len(c.Affects) > 0 {
			a["affects"] = c.Affects
		}
		all := []recordCall{{"record_constraint", a}}
		if p.kind == changeConstraint {
			r, _ := p.registry()
			was, _ := p.pick(r)
			all = append(all, recordCall{"record_decision", args{
				"what": fmt.Sprintf("Constraint %s: %s (before: %s).", c.Key, c.Text, was.Text), "why": sentence(p.why), "affects": []string{c.Key},
			}})
		}
		return all
	case decide:
		a := args{"what": sentence(p.text), "why": sentence(p.why)}
		if list := items(p.affects); len(list) > 0 {
			a["affects"] = list
		}
		return []recordCall{{"record_decision", a}}
	case resolve:
		return []recordCall{{"resolve_affected", args{"key": p.key, "item": p.affects, "how": p.why}}}
	case renameNet, renameRef, setField, fixDocs:
	}
	return nil
}

type recordCall struct {
	tool string
	args args
}

// sentence begins with a capital, unless it begins with a name, and ends with a full stop.
func sentence(text string) string {
	first, rest, _ := strings.Cut(text, " ")
	if first != "" && !strings.ContainsAny(first, "0123456789_/+") && strings.ToLower(first) == first && rest != "" {
		r := []rune(first)
		text = strings.ToUpper(string(r[:1])) + string(r[1:]) + " " + rest
	}
	if strings.ContainsAny(text[len(text)-1:], ".!?") {
		return text
	}
	return text + "."
}

var heldLine = regexp.MustCompile(`(?m)^(PASS|FAIL|NOT CHECKED) (.+)$`)

// held are the lines of an answer of record_constraint that say whether limits hold.
func held(body string) (lines []string, pass bool) {
	pass = true
	for _, m := range heldLine.FindAllStringSubmatch(body, -1) {
		lines = append(lines, m[0])
		pass = pass && m[1] == "PASS"
	}
	return lines, pass && len(lines) > 0
}
