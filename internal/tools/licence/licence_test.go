// SPDX-License-Identifier: Apache-2.0

package licence_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/fiducial-dev/fiducial/internal/tools/licence"
)

const mit = `MIT License

Permission is hereby granted, free of charge, to any person obtaining a
copy of this software`

const bsd = `Redistribution and use in source and
// binary forms`

func TestIdentify(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"one":        {mit, []string{"MIT"}},
		"two":        {mit + "\n\nApache License\n   Version 2.0", []string{"Apache-2.0", "MIT"}},
		"two-clause": {"Redistribution and use in source\nand binary forms, with", []string{"BSD-2-Clause"}},
		"three":      {"Redistribution and use in source\nand binary forms. Neither the name of", []string{"BSD-3-Clause"}},
		"file-wise":  {"Mozilla Public License Version 2.0", []string{"MPL-2.0"}},
		"copyleft":   {"GNU GENERAL PUBLIC LICENSE Version 3", nil},
		"comments":   {bsd, nil},
	} {
		if diff := cmp.Diff(c.want, licence.Identify(c.text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestCollect runs the go command over a module with a dependency for everybody,
// one for Windows and one for tests, then with one whose licence is not known.
func TestCollect(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(strings.ReplaceAll(tree, "MIT-TEXT", mit))).Files {
		file := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	proxy := serve(t, dir, "all", "win", "tst", "odd")
	env := append(os.Environ(), "GOPROXY=file://"+proxy, "GONOSUMDB=*", "GONOSUMCHECK=1", "GOFLAGS=-modcacherw", "GOMODCACHE="+t.TempDir())
	tidy(t, filepath.Join(dir, "m"), env)
	got, err := licence.Collect(t.Context(), []licence.Folder{{Name: "m", Dir: filepath.Join(dir, "m")}}, "example.com/m", env)
	if err != nil {
		t.Fatal(err)
	}
	want := licence.Report{
		Linked: []licence.Dependency{
			{Path: "example.com/all", Version: "v1.0.0", Licence: "MIT", Files: []string{"LICENSE", "NOTICE"}, Users: []string{"m"}},
			{Path: "example.com/win", Version: "v1.0.0", Licence: "MIT", Files: []string{"COPYING"}, Users: []string{"m"}},
		},
		Tests: []licence.Dependency{{Path: "example.com/tst", Version: "v1.0.0", Licence: "MIT", Files: []string{"LICENSE.md"}, Users: []string{"m"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if text := got.Markdown(); !strings.Contains(text, "| `example.com/all` | v1.0.0 | MIT | LICENSE, NOTICE | m |\n") {
		t.Errorf("the file lacks a line:\n%s", text)
	}

	if err := os.WriteFile(filepath.Join(dir, "m/odd.go"), []byte("package m\n\nimport _ \"example.com/odd\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tidy(t, filepath.Join(dir, "m"), env)
	_, err = licence.Collect(t.Context(), []licence.Folder{{Name: "m", Dir: filepath.Join(dir, "m")}}, "example.com/m", env)
	if err == nil || !strings.Contains(err.Error(), "example.com/odd@v1.0.0: no known licence in [LICENSE]") {
		t.Errorf("a licence that is not known: got %v", err)
	}
}

const tree = `
-- m/go.mod --
module example.com/m

go 1.26
-- m/m.go --
package m

import _ "example.com/all"
-- m/m_windows.go --
package m

import _ "example.com/win"
-- m/m_test.go --
package m

import _ "example.com/tst"
-- all/go.mod --
module example.com/all

go 1.26
-- all/a.go --
package all
-- all/LICENSE --
MIT-TEXT
-- all/NOTICE --
By them.
-- win/go.mod --
module example.com/win

go 1.26
-- win/a.go --
package win
-- win/COPYING --
MIT-TEXT
-- tst/go.mod --
module example.com/tst

go 1.26
-- tst/a.go --
package tst
-- tst/LICENSE.md --
MIT-TEXT
-- odd/go.mod --
module example.com/odd

go 1.26
-- odd/a.go --
package odd
-- odd/LICENSE --
All rights reserved.
`
