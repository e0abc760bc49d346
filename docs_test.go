// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The code in the guide is code of tests: what it shows compiles and does what it
// says.
func TestGuideShowsTestedCode(t *testing.T) {
	read := func(name string) string {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	flat := func(s string) string {
		var lines []string
		for line := range strings.Lines(s) {
			lines = append(lines, strings.TrimSpace(line))
		}
		return strings.Join(lines, "\n")
	}
	code := flat(read("example_test.go") + read("example_more_test.go") + read("llm/llmtest/example_test.go"))
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(read("docs/embedding.md"), -1)
	if len(blocks) < 5 {
		t.Fatalf("%d blocks", len(blocks))
	}
	for _, b := range blocks {
		if !strings.Contains(code, strings.TrimSpace(flat(b[1]))) {
			t.Errorf("no test holds this:\n%s", b[1])
		}
	}
}
