// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"regexp"
	"strings"
)

// What a person writes of constraints and decisions is free text, so these are read by their beginning and by the few
// words that part the text, never word by word.
var (
	addsConstraint = regexp.MustCompile(`(?is)^(?:add|record|note|create|define|register|introduce|impose|enter|log|put down|write down)\s+(?:(?:the|a|an|this|new|following|another|one|design)\s+)*(?:constraint|limit|requirement)\b[\s,]*(.*)$`)
	namesIt        = regexp.MustCompile(`(?is)^(?:called|named|with\s+the\s+(?:key|id|name))\s+["'` + "`" + `]?([A-Za-z0-9][\w.-]{0,62}?)["'` + "`" + `]?\s*(?:[:,]|\s)\s*(?:(?:that|saying|which says)\s+)?(.+)$`)
	keyColon       = regexp.MustCompile(`(?s)^([A-Za-z0-9][\w.-]{0,62}):\s+(.+)$`)
	leadIn         = regexp.MustCompile(`(?is)^(?:[:\x{2013}\x{2014}-]|that\b|saying\b|which says\b)\s*(.+)$`)
	subjectColon   = regexp.MustCompile(`(?is)^(?:for|on|of)\s+([^:]+):\s+(.+)$`)
	constrains     = regexp.MustCompile(`(?is)^(?:constrain|limit)\s+(.+?)\s+to\s+(.+)$`)
	requires       = regexp.MustCompile(`(?is)^(?:require|demand)\s+(?:that\s+)?(.+)$|^(?:constraint|requirement)\s*:\s*(.+)$`)

	changes        = regexp.MustCompile(`(?is)^(change|update|tighten|loosen|relax|raise|lower|modify|amend|revise|set|replace|adjust|edit)\s+(.+)$`)
	constraintWord = regexp.MustCompile(`(?i)\b(?:constraint|requirement|limit)\b`)
	toWord         = regexp.MustCompile(`(?i)\s+(?:to|with|by)\s+`)
	filler         = regexp.MustCompile(`(?i)\b(?:the|a|an|our|my|of|for|on|about|called|named|constraint|requirement|limit)\b|[:"'` + "`" + `\x{201c}\x{201d}]`)

	decisionStart = regexp.MustCompile(`(?is)^(?:record|log|note|write down|put down|document|register|add|enter|make a note of)\s+(?:(?:down|the|a|this|our|my|following|new|design)\s+)*decision\b\s*(?::|\x{2013}|-|(?:that|to|on|for|about)\b)?\s*(.*)$`)
	decides       = regexp.MustCompile(`(?is)^(?:we(?:'ve|\s+have)?\s+)?decided?\s+(?:to|that|on|for)\s+(.+)$|^decision\s*:\s*(.+)$`)

	resolves = regexp.MustCompile(`(?is)^resolve\s+["` + "`" + `]?([A-Za-z0-9][\w.-]{0,62}?)["` + "`" + `]?\s+(?:affects|for|on|of)\s+(.+?)(?::\s*|\s+because(?:\s+of)?\s+|,\s+)(.+)$`)

	because  = regexp.MustCompile(`(?i)[,;(]?\s*\bbecause(?:\s+of)?\s+|[,;(]?\s+due\s+to\s+|[,;(]\s*(?:reason|why|source)\s*:\s*|\s+(?:reason|why|source)\s*:\s*`)
	since    = regexp.MustCompile(`(?i)[,;(]?\s+since\s+`)
	perWord  = regexp.MustCompile(`(?i)[,;(]?\s+(?:per|according to|as per)\s+`)
	affects  = regexp.MustCompile(`(?is)\s*[;,.(]\s*(?:and\s+)?(?:(?:it|this|which)\s+)?affects:?\s+(.+)$|\s+(?:(?:it|this|which)\s+affects|affects:)\s+(.+)$`)
	listMark = regexp.MustCompile(`(?i)\s*(?:,|;|\band\b)\s*`)
)

// recordOf reads a request about the records of a project. A hint says what one of them lacks.
func recordOf(text string) (r request, hint string, ok bool) {
	text = strings.TrimSpace(text)
	switch {
	case resolves.MatchString(text):
		m := resolves.FindStringSubmatch(text)
		return request{kind: resolve, key: m[1], affects: bare(m[2]), why: bare(m[3])}, "", true
	case strings.HasPrefix(strings.ToLower(text), "resolve "):
		return r, "Say what came of looking at it: resolve KEY affects ITEM: WHAT CAME OF IT.", false
	case decisionStart.MatchString(text), decides.MatchString(text):
		return decision(text)
	case addsConstraint.MatchString(text), constrains.MatchString(text), requires.MatchString(text):
		return newConstraint(text)
	case changes.MatchString(text):
		return otherConstraint(text)
	}
	return r, "", false
}

func decision(text string) (r request, hint string, ok bool) {
	m := decisionStart.FindStringSubmatch(text)
	if m == nil {
		m = decides.FindStringSubmatch(text)
	}
	r = request{kind: decide}
	text, r.affects = cutAffects(strings.Join(m[1:], ""))
	r.text, r.why = cutWhy(text)
	if r.affects == "" {
		r.why, r.affects = cutAffects(r.why)
	}
	switch {
	case r.text == "":
		return r, "Say what was decided: record the decision to ... because ...", false
	case r.why == "":
		return r, "Say why: record the decision to ... because ...", false
	}
	return r, "", true
}

func newConstraint(text string) (r request, hint string, ok bool) {
	r = request{kind: addConstraint}
	var rest string
	switch m := addsConstraint.FindStringSubmatch(text); {
	case m != nil:
		rest = m[1]
	case constrains.MatchString(text):
		m := constrains.FindStringSubmatch(text)
		to, _ := cutAffects(m[2])
		to, _ = cutWhy(to)
		if _, ok := boundOf(to); !ok {
			return r, "", false // limit the number of ... to taste
		}
		if b, bare := quantityAlone(to); bare {
			m[2] = strings.Replace(m[2], to, "at most "+b, 1)
		}
		rest = m[1] + " " + m[2]
	default:
		rest = strings.Join(requires.FindStringSubmatch(text)[1:], "")
	}
	rest = strings.TrimSpace(rest)
	if m := namesIt.FindStringSubmatch(rest); m != nil {
		r.key, rest = m[1], m[2]
	}
	if m := leadIn.FindStringSubmatch(rest); m != nil {
		rest = m[1]
	}
	if m := subjectColon.FindStringSubmatch(rest); m != nil {
		rest = m[1] + " " + m[2]
	}
	if m := keyColon.FindStringSubmatch(rest); m != nil && r.key == "" {
		if refName.MatchString(m[1]) { // D1: at most 20 mA is about D1
			rest = m[1] + " " + m[2]
		} else {
			r.key, rest = m[1], m[2]
		}
	}
	rest, r.affects = cutAffects(rest)
	r.text, r.why = cutWhy(rest)
	if r.affects == "" {
		r.why, r.affects = cutAffects(r.why)
	}
	if r.text == "" {
		return r, "Say what must hold: add a constraint: D1 current at most 20 mA because ...", false
	}
	return r, "", true
}

// otherConstraint reads a change of one. Without the word constraint it is one only where nothing else is raised or
// tightened.
func otherConstraint(text string) (r request, hint string, ok bool) {
	m := changes.FindStringSubmatch(text)
	rest, affected := cutAffects(m[2])
	rest, why := cutWhy(rest)
	at := toWord.FindAllStringIndex(rest, -1)
	if len(at) == 0 {
		return r, "", false
	}
	cut := at[0]
	for _, i := range at {
		if _, ok := boundOf(bare(rest[i[1]:])); ok {
			cut = i
			break
		}
	}
	subject, to := rest[:cut[0]], bare(rest[cut[1]:])
	verb := strings.ToLower(m[1])
	if !constraintWord.MatchString(subject) && (verb == "change" || verb == "update" || verb == "set" || verb == "replace" || verb == "edit" || verb == "adjust" || verb == "modify" || verb == "amend" || verb == "revise") {
		return r, "", false
	}
	key := strings.Join(strings.Fields(filler.ReplaceAllString(subject, " ")), " ")
	switch {
	case key == "" || to == "":
		return r, "Say which constraint: change constraint KEY to at most 15 mA because ...", false
	case why == "":
		return r, "Say why, for the log of decisions: change constraint " + key + " to " + to + " because ...", false
	}
	return request{kind: changeConstraint, key: key, text: to, why: why, affects: affected}, "", true
}

// cutWhy parts what is said from the reason for it.
func cutWhy(text string) (what, why string) {
	for _, re := range []*regexp.Regexp{because, since, perWord} {
		for _, at := range re.FindAllStringIndex(text, -1) {
			if inQuotes(text, at[0]) {
				continue
			}
			why = bare(text[at[1]:])
			if text[at[0]] == '(' {
				why = strings.TrimSuffix(why, ")")
			}
			if re == perWord {
				why = strings.TrimSpace(strings.TrimLeft(text[at[0]:at[1]], ",;( ")) + " " + why
			}
			return bare(text[:at[0]]), why
		}
	}
	return bare(text), ""
}

// cutAffects takes the list of what is affected off the end.
func cutAffects(text string) (rest, list string) {
	m := affects.FindStringSubmatchIndex(text)
	if m == nil || inQuotes(text, m[0]) {
		return text, ""
	}
	at := m[2]
	end := m[3]
	if at < 0 {
		at, end = m[4], m[5]
	}
	list = strings.TrimSuffix(bare(text[at:end]), ")")
	if because.MatchString(list) { // the reason stands behind it
		var why string
		list, why = cutWhy(list)
		return text[:m[0]] + " because " + why, strings.TrimSuffix(list, ")")
	}
	return text[:m[0]], list
}

// items are the entries of a list in words.
func items(list string) (all []string) {
	for _, item := range listMark.Split(list, -1) {
		if item = bare(item); item != "" {
			all = append(all, item)
		}
	}
	return all
}

func inQuotes(text string, at int) bool {
	for i := 0; i < at; {
		if n := quotedAt(text, i); n > 0 {
			if at < i+n {
				return true
			}
			i += n
			continue
		}
		i++
	}
	return false
}

// bare is a text without blanks, quotes and the end of a sentence around it.
func bare(text string) string {
	text = strings.TrimSpace(text)
	for {
		was := text
		text = strings.TrimSpace(strings.TrimRight(text, ",;!?"))
		if strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "..") {
			text = strings.TrimSpace(strings.TrimSuffix(text, "."))
		}
		if n := quotedAt(text, 0); n > 0 && n == len(text) {
			w := lex(text + " ")
			text = strings.TrimSpace(w[0].text)
		}
		if text == was {
			return strings.Join(strings.Fields(text), " ")
		}
	}
}
