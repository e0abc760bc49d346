// SPDX-License-Identifier: Apache-2.0

package mask_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/mask"
)

// body is n characters as a key has them. The keys here are put together from
// parts, so that no scanner of repositories takes this file for a leak.
func body(n int) string { return strings.Repeat("aB3dE6fG9h", n/10+1)[:n] }

func secrets() map[string]string {
	return map[string]string{
		"openai": "sk-" + body(48), "openai project": "sk-proj-" + body(30) + "_-" + body(40), "anthropic": "sk-ant-api03-" + body(90) + "-AA",
		"npm": "npm_" + body(36), "github": "ghp_" + body(36), "github fine": "github_pat_" + body(22) + "_" + body(59),
		"google": "AIza" + body(35), "groq": "gsk_" + body(52), "xai": "xai-" + body(80), "aws": "AKIA" + "IOSFODNN7EXAMPLE",
		"pem":   "-----BEGIN RSA PRIVATE" + " KEY-----\nProc-Type: 4,ENCRYPTED\n\n" + body(64) + "\n" + body(40) + "==\n-----END RSA PRIVATE" + " KEY-----",
		"given": "correct horse battery", "given lines": "line one of it\nand \"two\" of it",
	}
}

func masker() *mask.Masker {
	s := secrets()
	return mask.New(s["given"], s["given lines"], "short")
}

func TestB64_KnownShapesAreMasked(t *testing.T) {
	t.Parallel()
	m := masker()
	for name, secret := range secrets() {
		for _, around := range []string{"%s", "before %s after", "\n%s\n", `key="%s"`, "x=%s;", "(%s)", `"a\n%s"`, "https://h/?key=%s&x=1", "/%s/"} {
			text := fmt.Sprintf(around, secret)
			got := m.Text(text)
			if want := fmt.Sprintf(around, mask.Mask); got != want {
				t.Errorf("%s: %q became %q, want %q", name, text, got, want)
			}
			if !m.Found(text) || m.Found(got) || m.Text(got) != got {
				t.Errorf("%s: found %v, in masked text %v", name, m.Found(text), m.Found(got))
			}
			if b := m.Bytes([]byte(text)); string(b) != got {
				t.Errorf("%s: bytes %q", name, b)
			}
		}
		quoted, err := json.Marshal("a " + secret)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Text(string(quoted)); got != `"a `+mask.Mask+`"` {
			t.Errorf("%s: JSON became %s", name, got)
		}
	}
}

func TestB64_SecretsWithContext(t *testing.T) {
	t.Parallel()
	m := mask.New()
	for text, want := range map[string]string{
		"Authorization: Bearer " + body(24):                 "Authorization: Bearer [masked]",
		"authorization: bearer a.b-c_d~e+f/" + body(9):      "authorization: bearer [masked]",
		"postgres://ada:" + "pa:ss" + "@db:5432/x?y":        "postgres://ada:[masked]@db:5432/x?y",
		"git clone https://" + body(24) + "@host/x.git":     "git clone https://[masked]@host/x.git",
		"https://h/x?a=1&access_token=" + body(12) + "#top": "https://h/x?a=1&access_token=[masked]#top",
		"GET /?API_KEY=" + body(8) + " HTTP":                "GET /?API_KEY=[masked] HTTP",
		"-----BEGIN PRIVATE" + " KEY-----\nMIIE" + body(30): "[masked]",
		"a sk-" + body(20) + ", sk-" + body(21) + ".":       "a [masked], [masked].",
	} {
		if got := m.Text(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestHarmlessTextStays(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte("x"))
	raw := make([]byte, 60000)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range raw {
		raw[i] = byte(rnd.Uint32())
	}
	m := masker()
	for _, text := range []string{
		"", "(uuid \"4f6d3c0e-8a55-4a0f-9c59-0b9a6a8ad0b1\")", fmt.Sprintf("%x", sum), "sha256-" + base64.StdEncoding.EncodeToString(sum[:]),
		`{"signature":"` + base64.StdEncoding.EncodeToString(raw) + `"}`, base64.URLEncoding.EncodeToString(raw),
		"risk-assessment-of-2024-and-later-years", "sk-circle-fade-dot-animation", "task-1234567890123456789012345", "bearer of responsibilities",
		"the bearer responsibilities-of-all", "https://example.com/a?b=c&key=R1", "ssh://git@github.com/x/y", "mailto:a@b.c", "see http://x.y/z:1 @ noon",
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "short", mask.Mask, "AKIAx", "npm_config_registry", "gsk_", "hf_hub",
	} {
		if got := m.Text(text); got != text || m.Found(text) {
			t.Errorf("%.80q became %.80q", text, got)
		}
	}
}

// TestHarmlessKiCadFiles reads the installed libraries, and the folder that
// FIDUCIAL_CORPUS names.
func TestHarmlessKiCadFiles(t *testing.T) {
	t.Parallel()
	n := 0
	m := mask.New()
	for _, dir := range []string{"/usr/share/kicad/symbols", "/usr/share/kicad/footprints/Package_QFP.pretty", os.Getenv("FIDUCIAL_CORPUS")} {
		if dir == "" {
			continue
		}
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.Contains(filepath.Ext(p), "kicad") {
				return err
			}
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			n++
			if got := m.Bytes(b); !bytes.Equal(got, b) {
				i := bytes.Index(got, []byte(mask.Mask))
				t.Errorf("%s: %q", p, got[max(0, i-60):i+20])
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if n == 0 {
		t.Skip("no KiCad files here")
	}
	t.Logf("%d files", n)
}

func TestFromEnv(t *testing.T) {
	t.Parallel()
	got := strings.Join(mask.FromEnv([]string{
		"ANTHROPIC_API_KEY=aaaaaaaa", "MYAPIKEY=bbbbbbbb", "GH_TOKEN=cccccccc", "DB_PASSWORD=d=dddddd", "client_secret=eeeeeeee", "AWS_CREDENTIALS=ffffffff",
		"PATH=/usr/bin:/bin", "KEYBOARD=qwertyuiop", "MONKEY=4k7_1percent", "MAX_TOKENS=123456789", "SHORT_KEY=1234567", "EMPTY_TOKEN=", "junk", "PWD=/home/ada/x",
	}), " ")
	if want := "aaaaaaaa bbbbbbbb cccccccc d=dddddd eeeeeeee ffffffff"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWriterFindsWhatArrivesInPieces(t *testing.T) {
	t.Parallel()
	m := masker()
	var text strings.Builder
	for _, around := range []string{"%s ", "a %s b\n", `{"k":"%s"}` + "\n", "x\n%s\n"} {
		for _, name := range []string{"openai", "anthropic", "npm", "google", "aws", "pem", "given", "given lines", "github fine"} {
			fmt.Fprintf(&text, around, secrets()[name])
		}
		text.WriteString("Bearer " + body(30) + " https://u:" + body(12) + "@h/?token=" + body(10) + "\n" + strings.Repeat("plain words ", 3000))
	}
	text.WriteString("sk-" + body(30)) // no end
	want := m.Text(text.String())
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 64))
		most := []int{1, 3, 17, 300, 5000}[seed%5]
		if most == 1 && seed > 5 {
			continue // each byte for itself is slow, and always the same
		}
		var out bytes.Buffer
		w := m.Writer(&out)
		before := 0
		for rest := text.String(); rest != ""; {
			n := min(len(rest), 1+rnd.IntN(most))
			if k, err := w.Write([]byte(rest[:n])); k != n || err != nil {
				t.Fatal(k, err)
			}
			rest = rest[n:]
			if tail := string(out.Bytes()[max(0, before-200):]); out.Len() > before && m.Found(tail) {
				t.Fatalf("seed %d: a secret came through: %q", seed, tail)
			}
			before = out.Len()
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Fatalf("seed %d: streamed text differs from Text", seed)
		}
		if _, err := w.Write([]byte("x")); err == nil {
			t.Error("wrote after Close")
		}
	}
}

func TestWriterPassesLinesOnAndKeepsErrors(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := mask.New().Writer(&out)
	_, _ = w.Write([]byte("one\ntwo"))
	if out.String() != "one\n" {
		t.Errorf("got %q", out.String())
	}
	full := errors.New("full")
	bad := mask.New().Writer(writerFunc(func([]byte) (int, error) { return 0, full }))
	if _, err := bad.Write([]byte("x\n")); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	if err := bad.Close(); !errors.Is(err, full) {
		t.Errorf("close: %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestNothingFoundCostsNoAllocation(t *testing.T) {
	m := masker()
	text := strings.Repeat("(pin passive line (at 0 0 0) (uuid \"4f6d3c0e-8a55-4a0f-9c59-0b9a6a8ad0b1\"))\n", 100)
	b := []byte(text)
	if n := testing.AllocsPerRun(20, func() { _ = m.Text(text); _ = m.Bytes(b); _ = m.Found(text) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzText(f *testing.F) {
	for _, s := range secrets() {
		f.Add("x "+s+" y", 5)
	}
	m := masker()
	f.Fuzz(func(t *testing.T, s string, cut int) {
		once := m.Text(s)
		if again := m.Text(once); again != once {
			t.Errorf("%q became %q and then %q", s, once, again)
		}
		var out bytes.Buffer
		w := m.Writer(&out)
		cut = min(max(cut, 0), len(s))
		_, _ = w.Write([]byte(s[:cut]))
		_, _ = w.Write([]byte(s[cut:]))
		if err := w.Close(); err != nil || out.String() != once {
			t.Errorf("%q cut at %d became %q, want %q (%v)", s, cut, out.String(), once, err)
		}
	})
}

func BenchmarkText(b *testing.B) {
	m := masker()
	line := "(symbol (lib_id \"Device:R\") (at 100 50 0) (uuid \"4f6d3c0e-8a55-4a0f-9c59-0b9a6a8ad0b1\") (property \"Datasheet\" \"https://x.y/z.pdf?a=b\"))\n"
	text := strings.Repeat(line, 1<<20/len(line))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		_ = m.Text(text)
	}
}
