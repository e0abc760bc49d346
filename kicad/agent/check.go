// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/kicad/findings"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/sch"
	"github.com/fiducial-dev/fiducial/kicad/sexpr"
	"github.com/fiducial-dev/fiducial/task"
	"github.com/fiducial-dev/fiducial/tool"
)

// baseline is what ERC and DRC said of the snapshot. It is taken once, while the
// model thinks, and awaited before the first write: until then the tree is the
// snapshot.
type baseline struct {
	overlay  map[string][]byte // the rule files as they were
	done     chan struct{}
	stop     context.CancelFunc // nobody needs it any more
	erc, drc kicadcli.Verdict
	nets     *kicadcli.Netlist // nil when the design did not load
	err      error

	parts map[string]startPart // by identity

	papers     papers
	drift      []docs.Mismatch // between them and the design
	driftKnown bool            // the design loaded, or there was nothing to compare

	contents map[string]digest // what each check looks at, as it was when this process began
	compared digest            // what check_drift looked at the last time; guarded by Bench.checks
}

func (p *baseline) start(ctx context.Context, b *Bench) error {
	in, err := b.baseInput(ctx)
	if err != nil {
		return err
	}
	if p.papers, err = b.papersBefore(ctx); err != nil { // here, before anything is written
		return err
	}
	p.parts = b.startParts(ctx)
	p.contents = map[string]digest{}
	for _, name := range []string{obligeERC, obligeDRC} {
		if sum, err := b.contents(name); err == nil { // else it is told when the check runs
			p.contents[name] = sum
		}
	}
	p.compared = b.papers().digest(p.contents[obligeERC])
	p.done = make(chan struct{})
	// Of a run that begins here the tree is the snapshot, and stays it until the
	// baseline is there: so what is said of it is remembered for the tree as well.
	now := !b.session.Resumed
	ctx, p.stop = context.WithCancel(ctx)
	go func() { // wait and get await it
		defer close(p.done)
		p.take(ctx, b, in, now)
	}()
	return nil
}

// take runs the checks that the project has side by side.
func (p *baseline) take(ctx context.Context, b *Bench, in func(name string) kicadcli.Input, now bool) {
	p.erc = kicadcli.Verdict{Check: findings.ERC, Status: kicadcli.NotRun, Reason: errNoSheet.Error()}
	p.drc = kicadcli.Verdict{Check: findings.DRC, Status: kicadcli.NotRun, Reason: errNoBoard.Error()}
	var wg sync.WaitGroup
	var errERC, errDRC, errDrift error
	if b.project.PCB != "" { // first: it takes the longest
		wg.Go(func() { p.drc, errDRC = b.verdict(ctx, obligeDRC, in(b.project.PCB), now) })
	}
	if b.project.Root != "" {
		// Without a netlist nothing is known of the nets; why, ERC tells.
		wg.Go(func() { p.nets, _ = b.netlist(ctx, in(b.project.Root), now) })
		wg.Go(func() { p.erc, errERC = b.verdict(ctx, obligeERC, in(b.project.Root), now) })
		wg.Go(func() { errDrift = p.takeDrift(ctx, b, in(b.project.Root), now) })
	}
	wg.Wait()
	p.err = errors.Join(hard(errERC), hard(errDRC), errDrift)
}

func (p *baseline) wait() {
	if p.done != nil {
		<-p.done
	}
}

// end stops what is still going on, and waits for it: a run that was refused at once
// needs no baseline.
func (p *baseline) end() {
	if p.stop != nil {
		p.stop()
	}
	p.wait()
}

// get awaits the baseline. Its error is that of a check that could not run at all
// (no kicad-cli, the caller's context); a design that does not load is a verdict.
func (p *baseline) get(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// verdict is what ERC or DRC says, from memory when remember is set and the tree
// has not changed since.
func (b *Bench) verdict(ctx context.Context, name string, in kicadcli.Input, remember bool) (kicadcli.Verdict, error) {
	do := b.cli.ERC
	if name == obligeDRC {
		do = b.cli.DRC
	}
	contents, err := b.contents(name)
	if err != nil || !remember {
		return do(ctx, in)
	}
	a, err := b.memory.ask(ctx, name, contents, func(a *answered) { a.verdict, a.err = do(ctx, in) })
	if a == nil {
		return kicadcli.Verdict{Check: findings.Check(name), Status: kicadcli.NotRun, Reason: err.Error()}, err
	}
	return a.verdict, err
}

// baseFailed is why nothing can be edited: what was found at the start is not known.
func baseFailed(err error) error {
	return tool.Errorf(tool.Failed, "nothing was changed: the checks of the start could not run, so that no edit could be judged: %w", err)
}

// hard is an error that is not about the design.
func hard(err error) error {
	for _, k := range []kicadcli.Kind{kicadcli.NotLoaded, kicadcli.Crashed, kicadcli.NoReport, kicadcli.BadOutput, kicadcli.Timeout} {
		if kicadcli.IsKind(err, k) {
			return nil // the verdict says NOT RUN and why
		}
	}
	return err
}

// Fault is why kicad-cli does not work, when that is the computer's doing; nil while
// it works. See [kicadcli.Runner.Fault].
func (b *Bench) Fault() error { return b.cli.Fault() }

// check is the last result of ERC or DRC in the run. It counts until the next
// edit that concerns it (B-104).
type check struct {
	ran      bool   // since the last such edit
	contents digest // that it looked at
	verdict  kicadcli.Verdict
	delta    findings.Delta
	outcome  findings.Outcome
	last     string // the verdict line of the last time it ran, for the summary
}

func (c *check) forget() { c.ran = false }

func (c *check) passes() bool {
	return c.ran && c.outcome != findings.SomethingNew && c.verdict.Status != kicadcli.NotRun
}

// run takes the check anew and compares it with the baseline.
func (b *Bench) run(ctx context.Context, name string) (*check, error) {
	if err := b.base.get(ctx); err != nil {
		return nil, err
	}
	kept, before, file := &b.erc, b.base.erc, b.project.Root
	if name == obligeDRC {
		kept, before, file = &b.drc, b.base.drc, b.project.PCB
	}
	in, err := b.judged(ctx, file)
	if err != nil {
		return nil, err
	}
	after, err := b.verdict(ctx, name, in, true)
	if err = hard(err); err != nil {
		return nil, err
	}
	c := &check{ran: true, verdict: after}
	if c.contents, err = b.contents(name); err != nil {
		c.contents = digest{} // the sheets cannot be read; then it did not run either
	}
	switch {
	case after.Status == kicadcli.NotRun:
		c.outcome = findings.SomethingNew
	case before.Status == kicadcli.NotRun:
		c.outcome = findings.NotComparable
		c.delta = findings.Compare(after.Report, after.Report, nil)
	default:
		c.delta = findings.Compare(before.Report, after.Report, nil)
		c.outcome = c.delta.Outcome()
	}
	c.last = c.line(before)
	b.checks.Lock()
	*kept = *c
	b.checks.Unlock()
	return c, nil
}

// judged is the input of a check: the rules of the start, with the nets that the run
// renamed under their new names, so that a net stays in its class.
func (b *Bench) judged(ctx context.Context, file string) (kicadcli.Input, error) {
	in := b.input(file)
	pro := b.project.Name + ".kicad_pro"
	rules := in.Overlay[pro]
	if b.base.nets == nil || rules == nil {
		return in, nil
	}
	now, err := b.nets(ctx)
	if err != nil {
		return in, hard(err)
	}
	renamed := compareNets(b.base.nets, now).renamed
	edits, _, err := sch.ProjectNets(pro, rules, renamed)
	if err != nil || len(edits) == 0 { // KiCad passes a file that is no JSON over, and so do we
		return in, nil //nolint:nilerr // see above
	}
	in.Overlay = maps.Clone(in.Overlay)
	in.Overlay[pro], err = sexpr.Apply(rules, edits)
	return in, err
}

// line is the verdict in one line: PASS, FAIL, NOT RUN or NOT COMPARABLE, what it
// rests on, and the command.
func (c *check) line(before kicadcli.Verdict) string {
	name := strings.ToUpper(string(c.verdict.Check))
	switch {
	case c.verdict.Status == kicadcli.NotRun:
		return fmt.Sprintf("%s NOT RUN: %s (%s)", name, c.verdict.Reason, c.verdict.Command)
	case before.Status == kicadcli.NotRun:
		return fmt.Sprintf("%s NOT COMPARABLE: it could not run before the first edit (%s); now: %s (%s)",
			name, before.Reason, c.verdict.Report.Summary(), c.verdict.Command)
	}
	return fmt.Sprintf("%s; now %s (%s)", c.short(), c.verdict.Report.Summary(), c.verdict.Command)
}

// short is the verdict against the start of the run, without the command.
func (c *check) short() string {
	name := strings.ToUpper(string(c.verdict.Check))
	if len(c.delta.Added)+len(c.delta.Removed)+len(c.delta.Silenced)+len(c.delta.Blind) == 0 {
		return fmt.Sprintf("%s %s: nothing new since the start of the run", name, c.outcome)
	}
	return fmt.Sprintf("%s %s: %s since the start of the run", name, c.outcome, c.delta.Summary())
}

// maxListed is how many findings or differences a tool's answer lists.
const maxListed = 40

// checkTool is run_erc or run_drc.
func (b *Bench) checkTool(name string, missing error) func(context.Context, struct{}) (tool.Output, error) {
	return func(ctx context.Context, _ struct{}) (tool.Output, error) {
		text, err := b.checkNow(ctx, name, missing)
		head, rest, _ := strings.Cut(text, "\n")
		return tool.Output{Summary: head, Content: rest}, err
	}
}

func (b *Bench) checkNow(ctx context.Context, name string, missing error) (string, error) {
	b.mu.RLock() // two checks may run side by side, and none beside an edit
	defer b.mu.RUnlock()
	upper := strings.ToUpper(name)
	file := b.project.Root
	if name == obligeDRC {
		file = b.project.PCB
	}
	if file == "" { // B-106, B-107: no repair cycle, nothing remembered
		return fmt.Sprintf("%s is not applicable for now: %v. Calling it again is pointless before there is one.", upper, missing), nil
	}
	c, err := b.run(ctx, name)
	if err != nil {
		return "", tool.Errorf(tool.Failed, "%s could not run: %w", upper, err)
	}
	text := c.last
	if c.verdict.Status == kicadcli.NotRun {
		b.session.Rules.Repair()
		return "", tool.Errorf(tool.Failed, "%s%s", text, b.whyNotLoaded(ctx, file))
	}
	if c.outcome == findings.SomethingNew {
		b.session.Rules.Repair()
		text += "\nNew findings, which keep the run from finishing; repair them:\n" + listed(c.delta.Added)
	} else {
		b.session.Rules.MeetKind(name)
	}
	if n := len(c.delta.Same); n > 0 {
		text += fmt.Sprintf("\n%d findings were there before the run and do not count against it.", n)
	}
	if n := len(c.delta.Removed); n > 0 {
		text += "\nGone since the start:\n" + listed(c.delta.Removed)
	}
	if r := b.ruleChanges(); len(r) > 0 {
		text += "\nThe rules were changed, which is no fix; the check goes by those of the start:\n- " + strings.Join(r, "\n- ")
	}
	if u := b.unseen(); u != "" {
		text += "\n" + u
	}
	if name == obligeERC {
		text += b.emptyDesign()
	}
	return text, nil
}

// listed puts each into a line, and tells how many are left out.
func listed[T fmt.Stringer](list []T) string {
	var lines []string
	for i, one := range list {
		if i == maxListed {
			lines = append(lines, fmt.Sprintf("- and %d more", len(list)-i))
			break
		}
		lines = append(lines, "- "+one.String())
	}
	return strings.Join(lines, "\n")
}

// emptyDesign warns that a clean check of nothing says nothing (B-105).
func (b *Bench) emptyDesign() string {
	if d, err := b.design(); err == nil && len(d.Parts()) == 0 {
		return "\nThe sheet has no symbols: this is no verified design."
	}
	return ""
}

func (b *Bench) whyNotLoaded(ctx context.Context, file string) string {
	reason, err := b.cli.Reason(ctx, b.input(file))
	if err != nil {
		return ""
	}
	return "\n" + reason.String()
}

// checkGate keeps a run from finishing while a check is due or has failed (B-44,
// B-45).
type checkGate struct {
	b    *Bench
	name string
}

func (g *checkGate) Name() string { return g.name }

// Closed goes by the files as they stand, and not by what the tools said alone: an
// editor, a hook or another program may have changed some of them.
func (g *checkGate) Closed(context.Context) []string {
	g.b.mu.RLock()
	defer g.b.mu.RUnlock()
	contents, err := g.b.contents(g.name)
	if g.name == obligeERC { // once a look at all gates
		g.b.noticeDrift(contents)
	}
	g.b.checks.Lock()
	defer g.b.checks.Unlock()
	due, c := g.due()
	start, known := g.b.base.contents[g.name]
	changed := known && (err != nil || start != contents)
	switch {
	case !due && (!changed || !g.applies()):
		return nil
	case !due && !c.ran:
		return []string{fmt.Sprintf("files have changed since the start, and not by a tool; call run_%s", g.name)}
	case err == nil && c.ran && c.contents != contents:
		return []string{fmt.Sprintf("files have changed since %s ran, and not by a tool; call run_%s", strings.ToUpper(g.name), g.name)}
	case c.passes():
		return nil
	case !c.ran:
		return []string{fmt.Sprintf("%s has not run since the last edit; call run_%s", strings.ToUpper(g.name), g.name)}
	}
	return []string{c.last}
}

// due reports whether the run's edits call for the check.
func (g *checkGate) due() (bool, *check) {
	touchedKiCad, touchedBoard := false, false
	for _, name := range g.b.session.Rules.Touched() {
		switch kindOf(name) {
		case sheet:
			touchedKiCad = true
			touchedBoard = touchedBoard || g.b.project.Parity()
		case config:
			touchedKiCad = true
		case board:
			touchedKiCad, touchedBoard = true, true
		case markdown, other:
		}
	}
	if g.name == obligeERC {
		return touchedKiCad && g.applies(), &g.b.erc
	}
	return touchedBoard && g.applies(), &g.b.drc
}

// applies reports whether there is anything to check.
func (g *checkGate) applies() bool {
	if g.name == obligeERC {
		return g.b.project.Root != ""
	}
	return g.b.project.PCB != ""
}

// Verification tells what was checked. It goes into the commit, so it names no
// path of this computer.
func (b *Bench) Verification() []string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	b.checks.Lock()
	defer b.checks.Unlock()
	var lines []string
	for _, c := range []*check{&b.erc, &b.drc} {
		if c.last == "" {
			continue
		}
		line := c.short()
		if c.verdict.Status != kicadcli.NotRun {
			line += fmt.Sprintf("; now %s (kicad-cli %s)", c.verdict.Report.Summary(), c.verdict.Report.Version)
		}
		if !c.ran {
			line += " [before later edits]"
		}
		lines = append(lines, line)
	}
	if b.driftLine != "" {
		line := b.driftLine
		if !b.driftRan {
			line += " [before later edits]"
		}
		lines = append(lines, line)
	}
	if u := b.unseen(); u != "" {
		lines = append(lines, u)
	}
	for _, r := range b.ruleChanges() {
		lines = append(lines, "Rules changed, and the checks did not go by it: "+r)
	}
	for _, d := range append(slices.Clone(b.electricalChanges()), b.flagChanges()...) {
		lines = append(lines, "Electrical change: "+d)
	}
	marked, unmarked := b.stale()
	return append(append(lines, marked...), unmarked...)
}

// unseen names the parts that the sheets place and kicad-cli leaves out, as it does in
// silence where a sheet or a symbol does not load (board cases 12 and 13): what it
// says of the design is not about them.
func (b *Bench) unseen() string {
	contents, err := b.sheets()
	if err != nil {
		return ""
	}
	list := b.memory.got(contents)
	d, err := b.design()
	if list == nil || err != nil {
		return ""
	}
	known := partsByRef(list)
	var refs []string
	for _, p := range d.Parts() {
		if _, ok := known[p.Ref]; !ok && !p.NoBoard {
			refs = append(refs, p.Ref)
		}
	}
	if len(refs) == 0 {
		return ""
	}
	n := len(refs)
	if n > maxListed {
		refs = append(refs[:maxListed], "and more")
	}
	return fmt.Sprintf("kicad-cli leaves out %d parts that the sheets place, because a sheet or a symbol does not load: %s. No check speaks of them", n, strings.Join(refs, ", "))
}

// ruleChanges are what the run changed about the rules, which never is a fix (case 30).
func (b *Bench) ruleChanges() (lines []string) {
	pro, dru := b.project.Name+".kicad_pro", b.project.Name+".kicad_dru"
	now := func(name string) []byte {
		data, err := b.read(path.Join(b.project.Dir, name))
		if err != nil {
			return nil // none, as kicad-cli sees it
		}
		return data
	}
	before, err := findings.ReadRules(b.base.overlay[pro], b.base.overlay[dru])
	if err != nil {
		return nil // there were none to change
	}
	after, err := findings.ReadRules(now(pro), now(dru))
	if err != nil {
		return []string{err.Error()}
	}
	for _, c := range findings.CompareRules(before, after) {
		lines = append(lines, c.String())
	}
	return lines
}

// electricalChanges are those of the whole run. A run that another process began
// tells the difference between start and end; what it edited is not known one by one.
func (b *Bench) electricalChanges() []string {
	if b.session == nil || !b.session.Resumed || b.base.nets == nil {
		return b.changes
	}
	contents, err := b.sheets()
	if err != nil {
		return b.changes
	}
	now := b.memory.got(contents)
	if now == nil {
		return b.changes
	}
	e := compareNets(b.base.nets, now)
	e.parts = compareParts(b.base.nets, now)
	if text := e.String(); text != "" {
		return strings.Split(text, "\n")
	}
	return nil
}

// A Check is what ERC or DRC said in a run.
type Check struct {
	Name    string            // ERC or DRC
	Line    string            // the verdict in a line
	Outcome findings.Outcome  // against the start of the run
	Before  *kicadcli.Verdict // at the start; nil when it did not run
	After   *kicadcli.Verdict // the last time; nil when it did not run
	Current bool              // no later edit concerns it
}

// Checks tells what ERC and DRC said.
func (b *Bench) Checks() []Check {
	b.base.wait()
	b.checks.Lock()
	defer b.checks.Unlock()
	out := []Check{{Name: "ERC", Before: &b.base.erc}, {Name: "DRC", Before: &b.base.drc}}
	for i, c := range []*check{&b.erc, &b.drc} {
		o := &out[i]
		if o.Before.Status == "" {
			o.Before = nil
		}
		o.Line = o.Name + " NOT RUN in this run"
		if c.last != "" {
			verdict := c.verdict
			o.Line, o.Outcome, o.After, o.Current = c.last, c.outcome, &verdict, c.ran
		}
	}
	return out
}

// snapshotRules are the project's rule files as they stood when the run began,
// as an overlay for kicad-cli; a file that was not there is left out.
func (b *Bench) snapshotRules(ctx context.Context) (map[string][]byte, error) {
	overlay := map[string][]byte{}
	for _, ext := range []string{".kicad_pro", ".kicad_dru"} {
		name := b.project.Name + ext
		data, err := b.original(ctx, path.Join(b.project.Dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		overlay[name] = data // nil: there was none
	}
	return overlay, nil
}

var (
	_ task.Gate  = (*checkGate)(nil)
	_ task.Judge = (*Bench)(nil)
)
