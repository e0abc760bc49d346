// SPDX-License-Identifier: Apache-2.0

package licence_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// serve makes a module proxy of folders, each of them example.com/NAME v1.0.0.
func serve(t *testing.T, dir string, names ...string) string {
	t.Helper()
	proxy := t.TempDir()
	for _, name := range names {
		to := filepath.Join(proxy, "example.com", name, "@v")
		if err := os.MkdirAll(to, 0o755); err != nil {
			t.Fatal(err)
		}
		mod, err := os.ReadFile(filepath.Join(dir, name, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"list": "v1.0.0\n", "v1.0.0.mod": string(mod), "v1.0.0.info": `{"Version":"v1.0.0"}`} {
			if err := os.WriteFile(filepath.Join(to, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		f, err := os.Create(filepath.Join(to, "v1.0.0.zip"))
		if err != nil {
			t.Fatal(err)
		}
		if err := zip.CreateFromDir(f, module.Version{Path: "example.com/" + name, Version: "v1.0.0"}, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return proxy
}

func tidy(t *testing.T, dir string, env []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "tidy")
	cmd.Dir, cmd.Env = dir, append(env, "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go mod tidy: %v\n%s", err, out)
	}
}
