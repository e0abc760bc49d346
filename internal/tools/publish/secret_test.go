// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/internal/tools/publish"
)

// found is what Contents says of a file with this text.
func found(t *testing.T, text string) string {
	t.Helper()
	dir := tree(t, workspace)
	write(t, filepath.Join(dir, "testdata/x.txt"), text)
	zips, _ := prepare(t, dir)
	wrong, err := publish.Contents(zips["."], []publish.Rule{{Dir: ".", MaxZip: 1 << 20, MaxUnpacked: 1 << 20, MaxTestdata: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range wrong {
		all = append(all, f.What)
	}
	return strings.Join(all, "\n")
}

// Secrets are put together here, so that this file can stand in a repository that is
// searched for them: @ stands for what looks random, and 20, 36 or 40 of it.
func planted(s string) string {
	const random = "h4XqZp0LmT9vRb27cWnKe81sYd5GuJf3oAi6tE2w"
	return strings.NewReplacer("@20", random[:20], "@36", random[:36], "@40", random, "#", "").Replace(s)
}

// TestSecretsWhereverTheyStand: what stands before a key does not hide it, as the
// escapes of a recorded request do not (E-267).
func TestSecretsWhereverTheyStand(t *testing.T) {
	t.Parallel()
	key := planted("sk-#ant-api03-@36")
	for _, before := range []string{
		"", " ", `"`, "=", "_", "KEY_", "%3D", "%3d", `\n`, `\t`, `\r\n`, `\\n`, `\u003d`, `\x3d`, "\n", "-", ":", "ключ",
	} {
		if got := found(t, before+key); !strings.Contains(got, "looks like a key of a model provider") {
			t.Errorf("after %q: got %q, want the key", before, got)
		}
	}
	if got := found(t, "ta"+key); got != "" {
		t.Errorf("a word that ends so: got %q", got)
	}
	if got := found(t, key+`\n`+key); strings.Count(got, "\n") != 1 {
		t.Errorf("two in a row: got %q", got)
	}
}

// TestSecretsOfEachKind holds a secret of each kind, and what only looks like one.
func TestSecretsOfEachKind(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"gs#k_@40":              "a key of a model provider",
		"xa#i-@40@40":           "a key of a model provider",
		"pp#lx-@40@20":          "a key of a model provider",
		"h#f_@36":               "a token of Hugging Face",
		"g#hp_@36":              "a token of GitHub",
		"github#_pat_@20@40":    "a token of GitHub",
		"gl#pat-@20":            "a token of GitLab",
		"np#m_@36":              "a token of npm",
		"s#k_live_@20":          "a key of Stripe",
		"AK#IAQ3ZX7PLM2WV9RTB4": "a key of AWS",
		"xox#b-@20":             "a token of Slack",
		"Bearer# @40":           "a bearer token",
		"AGE-SECRET#-KEY-1" + strings.Repeat("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 2): "a private key",
		"Private#-Lines: 1\nAAAAIG4gb3RoZXIgdGhhbiB0ZXN0":                           "a private key",

		"hf_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx":      "",
		"npm_run_build_and_then_test_all_of_it_once": "",
		"sk_live_" + "abcdefghijklmnopqrstuvwxyz":    "",
		"glpat-your-token-goes-right-here":           "",

		"postgres#://app:Xk29fjQw@db.fiducial.dev:5432/runs": "a URL with a password",
		`{"u":"https#://bot:Xk29fjQw@git.fiducial.dev/x"}`:   "a URL with a password",
		"redis#://:Xk29fjQw@cache:6379":                      "a URL with a password",
		"postgres#://app:correct%20horse@db":                 "a URL with a password",
		"postgres://user:password@host:port/database":        "",
		"postgres://u:pw@host/db":                            "",
		"postgres://app:$PASSWORD@db":                        "",
		"postgres://app:<password>@db":                       "",
		"postgres://app:%s@db":                               "",
		"postgres#://app:Xk29fjQw@localhost/x":               "",
		"postgres#://app:Xk29fjQw@127.0.0.1:5432/x":          "",
		"https#://app:Xk29fjQw@api.example.com/x":            "",
		"https://example.com:8080/a@b":                       "",
		"https://host.dev/a:b and me@fiducial.dev":           "",
	} {
		got := found(t, planted(text))
		if want == "" && got != "" || want != "" && !strings.HasSuffix(got, "looks like "+want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// TestSecretsPrivateKeys: every block whose header says so, however it is written
// down; a header alone is talk of keys.
func TestSecretsPrivateKeys(t *testing.T) {
	t.Parallel()
	const head, of = "-----BEGIN ", "PRIVATE" + " KEY-----"
	for name, c := range map[string]struct {
		text string
		want bool
	}{
		"RSA":                  {head + "RSA " + of + "\nMIIEpAIBAAKCAQEA7bq1c2d3e4f5\n", true},
		"OpenSSH":              {head + "OPENSSH " + of + "\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU\n", true},
		"EC":                   {head + "EC " + of + "\nMHcCAQEEIIr8Nn3mM5J0u2QyL\n", true},
		"PKCS8 of Ed25519":     {head + of + "\nMC4CAQAwBQYDK2VwBCIEIHfW\n", true},
		"Windows":              {head + of + "\r\nMC4CAQAwBQYDK2VwBCIEIHfW\r\n", true},
		"with headers":         {head + "RSA " + of + "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A1B\n\nqtRk0hnT3mBzQw8sVb1LxUe7\n", true},
		"in JSON":              {`{"k":"` + head + of + `\nMC4CAQAwBQYDK2VwBCIEIHfW\n"}`, true},
		"in JSON in JSON":      {`"{\"k\":\"` + head + of + `\\nMC4CAQAwBQYDK2VwBCIEIHfW"`, true},
		"headers in JSON":      {head + of + `\nProc-Type: 4,ENCRYPTED\n\nqtRk0hnT3mBzQw8sVb1LxUe7\n`, true},
		"in Go":                {"const k = \"" + head + of + "\\n\" +\n\t\"MC4CAQAwBQYDK2VwBCIEIHfW\\n\"", true},
		"in YAML":              {"k: |\n  " + head + of + "\n  MC4CAQAwBQYDK2VwBCIEIHfW\n", true},
		"of GnuPG":             {head + "PGP " + strings.Replace(of, "KEY", "KEY BLOCK", 1) + "\nVersion: GnuPG v2\n\nlQOYBGVx0kQBCADKq7m2Zc4v\n", true},
		"an ellipsis":          {head + of + "\n...\n-----END " + of + "\n", false},
		"a header in a string": {`regexp.MustCompile("` + head + of + `")`, false},
		"a public key":         {head + "PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6F\n", false},
	} {
		if got := found(t, c.text); strings.Contains(got, "looks like a private key") != c.want {
			t.Errorf("%s: got %q, want it found: %v", name, got, c.want)
		}
	}
}
