// SPDX-License-Identifier: Apache-2.0

package kicadcli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
)

// B-96: where kicad-cli gives no place with its message, the file does.
func TestReason_PlaceOfOurOwn(t *testing.T) {
	t.Parallel()
	sheet := kicadtest.Divider("p").String()
	long := strings.Replace(sheet, "(paper", strings.Repeat(" ", 500)+"(paper", 1)
	for name, tt := range map[string]struct{ says, text, want string }{
		"another limit": {"Error: Maximum line length exceeded", long, "line 6: a line of 514 bytes"},
		"no version":    {"Error: KiCad was unable to open this file because it was created with a more recent version", "\n(kicad_sch)\n", "line 2: kicad-cli does not load this format"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, kicadcli.Options{Path: script(t, "echo '"+tt.says+"' >&2\nexit 3")})
			dir := project(t, map[string]string{"p.kicad_sch": tt.text})
			reason, err := r.Reason(t.Context(), kicadcli.At(filepath.Join(dir, "p.kicad_sch")))
			if err != nil || !strings.HasPrefix(reason.String(), tt.want) {
				t.Errorf("%q, %v, want %q", reason, err, tt.want)
			}
		})
	}
}
