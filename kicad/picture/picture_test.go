// SPDX-License-Identifier: Apache-2.0

package picture_test

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/kicad/internal/board"
	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/picture"
	"github.com/fiducial-dev/fiducial/kicad/project"
)

func newRunner(t *testing.T) *kicadcli.Runner {
	t.Helper()
	r, err := kicadcli.New(kicadcli.Options{Path: kicadtest.CLI(t), TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// state writes files and finds the project in them; no files is no project.
func state(t *testing.T, name string, files map[string]string) picture.State {
	t.Helper()
	dir := t.TempDir()
	kicadtest.Write(t, dir, files)
	return stateOf(t, name, dir)
}

func stateOf(t *testing.T, name, dir string) picture.State {
	t.Helper()
	p, err := project.Find(os.DirFS(dir), ".")
	if e, ok := errors.AsType[*project.Error](err); ok && e.Kind == project.NotFound {
		p, err = nil, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return picture.State{Name: name, Top: dir, Project: p}
}

func compare(t *testing.T, before, after picture.State) *picture.Diff {
	t.Helper()
	d, err := picture.Compare(t.Context(), newRunner(t), before, after)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// told lists the lines of a diff.
func told(d *picture.Diff) []string {
	var list []string
	for _, c := range d.Electrical {
		list = append(list, string(c.Kind)+" "+c.What+" "+c.Text)
	}
	for _, v := range d.Views {
		for _, e := range v.Entries {
			list = append(list, v.Name+": "+string(e.Kind)+" "+e.Text)
		}
	}
	return list
}

// bundled is the bundled board with texts replaced: file, old, new.
func bundled(t *testing.T, changes ...[3]string) string {
	t.Helper()
	dir := t.TempDir()
	if err := board.Write(dir); err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		file := filepath.Join(dir, c[0])
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), c[1]) {
			t.Fatalf("%s has no %q: %v", c[0], c[1], err)
		}
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), c[1], c[2])), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestRename tells a renamed net once and shows its labels; the tracks that follow it are no change.
func TestRename(t *testing.T) {
	t.Parallel()
	after := bundled(t,
		[3]string{board.Root, `"STATUS"`, `"HEARTBEAT"`}, [3]string{board.Child, `"STATUS"`, `"HEARTBEAT"`},
		[3]string{board.PCB, `"/STATUS"`, `"/HEARTBEAT"`})
	d := compare(t, stateOf(t, "a", bundled(t)), stateOf(t, "b", after))
	want := []string{
		"changed net /STATUS renamed to /HEARTBEAT",
		"Root sheet: changed label STATUS → HEARTBEAT",
		"Root sheet: changed sheet MCU: pin STATUS (output) → HEARTBEAT (output)",
		"Sheet MCU: changed hierarchical label STATUS → HEARTBEAT",
	}
	if diff := cmp.Diff(want, told(d)); diff != "" {
		t.Errorf("told (-want +got)\n%s", diff)
	}
	seen := map[string]bool{}
	for _, id := range d.Electrical[0].Marks {
		view, _, _ := strings.Cut(id, "-")
		seen[view] = true
	}
	for _, v := range d.Views { // the rename points at both sheets and at the tracks on the front
		if on := v.Name != "Board, back"; seen[v.ID] != on {
			t.Errorf("the rename points at %s: %v, want %v", v.Name, seen[v.ID], on)
		}
	}
}

// TestSame finds nothing between two copies.
func TestSame(t *testing.T) {
	t.Parallel()
	d := compare(t, stateOf(t, "a", bundled(t)), stateOf(t, "b", bundled(t)))
	if !d.Empty() || len(d.Views) != 4 {
		t.Errorf("%d views, %q, %q, want 4 and nothing", len(d.Views), told(d), d.Notes)
	}
}

// TestBoardAlone compares boards without a schematic, whose nets are the pads'.
func TestBoardAlone(t *testing.T) {
	t.Parallel()
	moved := strings.Replace(kicadtest.Board, `"R1"`, `"R7"`, 1)
	segment := regexp.MustCompile(`(?s)\n\t\(segment\n.*?\n\t\)`)
	moved = strings.Replace(moved, segment.FindString(moved), "", 1)
	d := compare(t, state(t, "a", map[string]string{"p.kicad_pcb": kicadtest.Board}), state(t, "b", map[string]string{"p.kicad_pcb": moved}))
	got := strings.Join(told(d), "\n")
	for _, want := range []string{"changed part R1 renamed to R7", "Board, front: changed R1 → R7", "Board, front: removed 1 track of /OUT"} {
		if !strings.Contains(got, want) {
			t.Errorf("not told: %q in\n%s", want, got)
		}
	}
	if len(d.Views) < 2 || d.Views[0].SVG[picture.Before] == nil || d.Views[0].Same() {
		t.Errorf("the pictures are missing or alike")
	}
}

// TestNew shows a project that was not there before, and one that does not load any more.
func TestNew(t *testing.T) {
	t.Parallel()
	files := map[string]string{"p.kicad_pro": "{}", "p.kicad_sch": kicadtest.Divider("p").String()}
	d := compare(t, state(t, "a", map[string]string{"readme": ""}), state(t, "b", files))
	got := strings.Join(told(d), "\n")
	if !strings.Contains(got, "added part R1") || d.Views[0].Gone[picture.Before] == "" || d.Views[0].SVG[picture.After] == nil {
		t.Errorf("%s; before: %q", got, d.Views[0].Gone)
	}
	files["p.kicad_sch"] = strings.TrimSuffix(strings.TrimSpace(files["p.kicad_sch"]), ")")
	d = compare(t, state(t, "b", map[string]string{"p.kicad_pro": "{}", "p.kicad_sch": kicadtest.Divider("p").String()}), state(t, "c", files))
	if d.Unknown == "" || !strings.Contains(d.Views[0].Gone[picture.After], "kicad-cli") {
		t.Errorf("a sheet that does not load: unknown %q, gone %q", d.Unknown, d.Views[0].Gone)
	}
}

// TestFormat warns when the format changed, and finds nothing else then.
func TestFormat(t *testing.T) {
	t.Parallel()
	now := kicadtest.Divider("p").String()
	was := strings.Replace(now, "(version 20250114)", "(version 20231120)", 1)
	d := compare(t, state(t, "a", map[string]string{"p.kicad_sch": was}), state(t, "b", map[string]string{"p.kicad_sch": now}))
	if len(d.Notes) != 1 || !strings.Contains(d.Notes[0], "p.kicad_sch was saved by another version") || len(told(d)) > 0 {
		t.Errorf("notes %q, told %q", d.Notes, told(d))
	}
}

// TestPointer says why a board that Git LFS keeps elsewhere is not shown.
func TestPointer(t *testing.T) {
	t.Parallel()
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
	d := compare(t, state(t, "a", map[string]string{"p.kicad_pcb": pointer}), state(t, "b", map[string]string{"p.kicad_pcb": kicadtest.Board}))
	if len(d.Notes) == 0 || !strings.Contains(d.Notes[0], "before: p.kicad_pcb is a Git LFS pointer") || d.Views[0].Gone[picture.Before] == "" || d.Views[0].SVG[picture.After] == nil {
		t.Errorf("notes %q, gone %q", d.Notes, d.Views[0].Gone)
	}
}

// TestDamagedText says why a text that stands in the file is in no picture: KiCad drops it without a word.
func TestDamagedText(t *testing.T) {
	t.Parallel()
	good := kicadtest.Divider("p").String()
	bad := strings.Replace(good, `"4k7"`, "\"4k7\xb5\"", 1)
	d := compare(t, state(t, "a", map[string]string{"p.kicad_sch": good}), state(t, "b", map[string]string{"p.kicad_sch": bad}))
	if len(d.Notes) != 1 || !strings.Contains(d.Notes[0], "after: p.kicad_sch:") || !strings.Contains(d.Notes[0], "UTF-8") {
		t.Errorf("notes %q", d.Notes)
	}
}

const hostile = `</script></title><script>alert(1)</script><img src=x onerror=alert(2)>&quot;\" ' {{.}} http://evil.example/`

// TestPage holds the page to what it promises: both states are in it, nothing of the design is markup, and nothing is
// loaded from elsewhere.
func TestPage(t *testing.T) {
	t.Parallel()
	draw := func(value string) map[string]string {
		s := kicadtest.Divider("p")
		s.Resistor("R9", strings.NewReplacer(`\"`, `\\\"`, `"`, `\"`).Replace(value), 70, 20)
		s.Add("\t(text %s\n\t\t(at 20 100 0)\n\t\t(uuid \"%s\")\n\t)\n", `"</svg><a href='javascript:alert(3)'>x</a>"`, kicadtest.UUID(900))
		s.Child(strings.NewReplacer(`\"`, `x`, `"`, ``).Replace(hostile), "c.kicad_sch", 80, 30)
		return map[string]string{"p.kicad_pro": "{}", "p.kicad_sch": s.String(), "c.kicad_sch": kicadtest.NewSheet("p", 700).String(), "p.kicad_pcb": kicadtest.Board}
	}
	d := compare(t, state(t, hostile, draw("10k")), state(t, "b", draw(hostile)))
	if !strings.Contains(strings.Join(told(d), "\n"), "alert(1)") {
		t.Fatalf("the hostile value is not told: %q, %q", told(d), d.Notes)
	}
	var page bytes.Buffer
	if err := d.WriteHTML(&page, hostile); err != nil {
		t.Fatal(err)
	}
	text, images := elements(t, page.String())
	if n := len(images); n != len(slices.Compact(images)) || n < 4 {
		t.Errorf("%d pictures, want both states of the root sheet and of the others one at least", n)
	}
	if !strings.Contains(text, "alert(1)") {
		t.Error("the hostile text is not shown as text")
	}
	for _, svg := range images {
		checkSVG(t, svg)
	}
}

// elements reads the page, checks every element and attribute, and returns its text and its pictures.
func elements(t *testing.T, page string) (text string, images []string) {
	t.Helper()
	for _, tag := range []string{"script", "style"} {
		parts := regexp.MustCompile(`(?s)<`+tag+`>(.*?)</`+tag+`>`).FindAllString(page, -1)
		if len(parts) != 1 {
			t.Fatalf("%d elements %s, want one", len(parts), tag)
		}
		page = strings.Replace(page, parts[0], "", 1)
	}
	dec := xml.NewDecoder(strings.NewReader(page))
	dec.Strict, dec.AutoClose, dec.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	allowed := strings.Fields("html head meta title body header div h1 h2 p span button label input nav ul li details summary main section figure figcaption img svg rect")
	policy := ""
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the page cannot be read: %v", err)
		}
		switch tok := tok.(type) {
		case xml.CharData:
			text += string(tok)
		case xml.StartElement:
			if !slices.Contains(allowed, tok.Name.Local) {
				t.Errorf("element %s", tok.Name.Local)
			}
			for _, a := range tok.Attr {
				switch name := a.Name.Local; {
				case strings.HasPrefix(name, "on") || name == "href" || name == "style":
					t.Errorf("attribute %s of %s", name, tok.Name.Local)
				case name == "src":
					data, ok := strings.CutPrefix(a.Value, "data:image/svg+xml;base64,")
					svg, err := base64.StdEncoding.DecodeString(data)
					if !ok || err != nil {
						t.Errorf("src %.40q: %v", a.Value, err)
					}
					images = append(images, string(svg))
				case name == "content" && strings.Contains(a.Value, "default-src"):
					policy = a.Value
				}
			}
		}
	}
	if !strings.HasPrefix(policy, "default-src 'none'; img-src data:; style-src 'sha256-") || strings.Contains(policy, "unsafe") {
		t.Errorf("policy %q", policy)
	}
	return text, images
}

// checkSVG wants nothing but shapes in a picture.
func checkSVG(t *testing.T, svg string) {
	t.Helper()
	rest := strings.Replace(svg, `xmlns="http://www.w3.org/2000/svg"`, "", 1)
	for _, bad := range []string{"http", "script", "alert", "href", "url(", "<text", "<desc", "style="} {
		if strings.Contains(rest, bad) {
			t.Errorf("a picture holds %q", bad)
		}
	}
	dec := xml.NewDecoder(strings.NewReader(svg))
	n := 0
	for {
		_, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("a picture is no XML: %v", err)
		}
		n++
	}
	if n < 4 {
		t.Errorf("a picture has %d parts", n)
	}
}
