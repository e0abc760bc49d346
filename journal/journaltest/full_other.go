//go:build !linux

// SPDX-License-Identifier: Apache-2.0

package journaltest

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/fiducial-dev/fiducial/journal"
)

func testFullDisk(t *testing.T, _ Store)  { t.Skip("the test needs Linux") }
func testFileLimit(t *testing.T, _ Store) { t.Skip("the test needs Linux") }

func fillChild(context.Context, journal.Journal, io.Writer) error {
	return errors.New("the test needs Linux")
}
