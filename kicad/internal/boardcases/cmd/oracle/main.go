// SPDX-License-Identifier: Apache-2.0

// Command oracle asks kicad-cli what it says of the drawn cases and writes oracle.json and expected.md of each into a
// folder. It reads kicad-cli's outputs by itself, with nothing of the readers that the cases judge. With -all it also
// writes the cases' files, which makes the folder one for FIDUCIAL_BOARD_CASES.
package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/internal/boardcases/drawn"
)

func main() {
	out := flag.String("o", "testdata", "folder to write to")
	all := flag.Bool("all", false, "write the cases' files too")
	only := flag.String("only", "", "only cases whose name matches this regular expression")
	flag.Parse()
	pattern, err := regexp.Compile(*only)
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		err = run(ctx, *out, *all, pattern)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out string, all bool, only *regexp.Regexp) error {
	home, err := os.MkdirTemp("", "oracle")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(home) }()
	a := asker{home: home}
	if err := a.seed(); err != nil {
		return err
	}
	for _, c := range drawn.All() {
		if !only.MatchString(c.Name) {
			continue
		}
		work := filepath.Join(home, "cases", c.Name)
		if err := errors.Join(os.MkdirAll(work, 0o700), c.Write(work)); err != nil {
			return err
		}
		answers := map[string]map[string]any{}
		for _, name := range c.Asked() {
			if answers[name], err = a.ask(ctx, work, name, c.Checks); err != nil {
				return fmt.Errorf("%s/%s: %w", c.Name, name, err)
			}
		}
		data, err := json.MarshalIndent(answers, "", " ")
		if err != nil {
			return err
		}
		to := filepath.Join(out, c.Name)
		if err := errors.Join(os.MkdirAll(to, 0o750), os.WriteFile(filepath.Join(to, "oracle.json"), append(data, '\n'), 0o600),
			os.WriteFile(filepath.Join(to, "expected.md"), []byte(c.Expected()), 0o600)); err != nil {
			return err
		}
		if all {
			if err := c.Write(to); err != nil {
				return err
			}
		}
	}
	return nil
}

type asker struct{ home string }

// seed copies the stock library tables, as the runner of the product does.
func (a asker) seed() error {
	dir := filepath.Join(a.home, "cfg", "9.0")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.MkdirAll(filepath.Join(a.home, "tmp"), 0o700)); err != nil {
		return err
	}
	for _, t := range []string{"sym-lib-table", "fp-lib-table"} {
		data, err := os.ReadFile(filepath.Join("/usr/share/kicad/template", t))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, t), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// cli runs kicad-cli in the case's folder; rc is as a shell counts it.
func (a asker) cli(ctx context.Context, dir string, args ...string) (rc int, stdout, stderr string, err error) {
	cmd := exec.CommandContext(ctx, "kicad-cli", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=/usr/bin:/bin", "HOME=" + a.home, "KICAD_CONFIG_HOME=" + filepath.Join(a.home, "cfg"), "XDG_CACHE_HOME=" + filepath.Join(a.home, "cache"),
		"XDG_DATA_HOME=" + filepath.Join(a.home, "data"), "TMPDIR=" + filepath.Join(a.home, "tmp"), "LC_ALL=C.UTF-8",
	}
	var o, e strings.Builder
	cmd.Stdout, cmd.Stderr = &o, &e
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if rc, err = exit.ExitCode(), nil; rc < 0 {
			rc = 139
		}
	}
	clean := func(s string) string {
		s = regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d: `).ReplaceAllString(s, "")
		return strings.TrimSpace(strings.ReplaceAll(s, dir+"/", ""))
	}
	return rc, clean(o.String()), clean(e.String()), err
}

func (a asker) ask(ctx context.Context, dir, name string, checks bool) (map[string]any, error) {
	out := filepath.Join(a.home, "out")
	_ = os.Remove(out)
	file := filepath.Join(dir, filepath.FromSlash(name))
	answer := map[string]any{}
	if filepath.Ext(name) == ".kicad_pcb" {
		rc, _, stderr, err := a.cli(ctx, dir, "pcb", "export", "pos", "-o", out, file)
		answer["pos"] = map[string]any{"rc": rc, "stderr": stderr}
		if err == nil && checks {
			answer["drc"], err = a.report(ctx, dir, out, "pcb", "drc", file)
		}
		return answer, err
	}
	rc, stdout, stderr, err := a.cli(ctx, dir, "sch", "export", "netlist", "-o", out, file)
	answer["netlist"] = map[string]any{"rc": rc, "stdout": stdout, "stderr": stderr}
	if err == nil && rc == 0 {
		answer["nets"], err = nets(out)
	}
	if err == nil && rc == 0 {
		answer["inventory"], err = a.inventory(ctx, dir, out, file)
	}
	if err == nil && checks {
		answer["erc"], err = a.report(ctx, dir, out, "sch", "erc", file)
	}
	return answer, err
}

var (
	netForm  = regexp.MustCompile(`(?s)\(net \(code "\d+"\) \(name "((?:[^"\\]|\\.)*)"\)(.*?)(?:\n    \(net |\z)`)
	nodeForm = regexp.MustCompile(`\(node \(ref "((?:[^"\\]|\\.)*)"\) \(pin "((?:[^"\\]|\\.)*)"\)`)
	unescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`)
)

// nets reads the netlist line by line, as kicad-cli lays it out.
func nets(file string) (map[string][]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	nets := map[string][]string{}
	_, rest, _ := strings.Cut(string(data), "(nets")
	for _, item := range strings.Split(rest, "\n    (net ")[1:] {
		m := netForm.FindStringSubmatch("(net " + item)
		if m == nil {
			return nil, fmt.Errorf("no net: %q", item)
		}
		name := unescape.Replace(m[1])
		nets[name] = []string{}
		for _, n := range nodeForm.FindAllStringSubmatch(item, -1) {
			nets[name] = append(nets[name], unescape.Replace(n[1])+"."+unescape.Replace(n[2]))
		}
		slices.Sort(nets[name])
	}
	return nets, nil
}

func (a asker) inventory(ctx context.Context, dir, out, file string) ([]map[string]string, error) {
	_ = os.Remove(out)
	_, _, _, err := a.cli(ctx, dir, "sch", "export", "bom", "--include-excluded-from-bom", "--ref-range-delimiter", "", "--fields",
		"Reference,Value,Footprint,${DNP},${EXCLUDE_FROM_BOM},${EXCLUDE_FROM_BOARD}", "-o", out, file)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(out)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, err
	}
	list := []map[string]string{}
	for _, row := range rows[1:] {
		list = append(list, map[string]string{"ref": row[0], "value": row[1], "footprint": row[2], "dnp": row[3], "xbom": row[4], "xboard": row[5]})
	}
	return list, nil
}

// report runs ERC or DRC and counts by type and severity.
func (a asker) report(ctx context.Context, dir, out, kind, check, file string) (map[string]any, error) {
	_ = os.Remove(out)
	rc, _, _, err := a.cli(ctx, dir, kind, check, "--format", "json", "--severity-all", "-o", out, file)
	answer := map[string]any{"rc": rc}
	if err != nil || rc != 0 {
		return answer, err
	}
	data, err := os.ReadFile(out)
	if err != nil {
		return nil, err
	}
	type finding struct {
		Type, Severity string
		Excluded       bool
	}
	var report struct {
		Sheets []struct {
			Path       string
			Violations []finding
		}
		Violations  []finding
		Unconnected []finding `json:"unconnected_items"`
	}
	if err := json.Unmarshal(data, &report); err != nil {
		return nil, err
	}
	found := slices.Concat(report.Violations, report.Unconnected)
	if check == "erc" {
		paths := []string{}
		for _, s := range report.Sheets {
			paths = append(paths, s.Path)
			found = append(found, s.Violations...)
		}
		answer["sheets"] = paths
	}
	counts := map[string]int{}
	for _, f := range found {
		key := f.Type + ":" + f.Severity
		if f.Excluded {
			key += ":excluded"
		}
		counts[key]++
	}
	answer["counts"] = counts
	return answer, nil
}
