// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"fmt"

	"github.com/fiducial-dev/fiducial/tool"
)

type sumIn struct {
	A int `json:"a" jsonschema:"first"`
	B int `json:"b" jsonschema:"second"`
}

func sumTool() tool.Tool {
	return tool.Must(tool.New("add", "Adds.", func(_ context.Context, in sumIn) (string, error) {
		return fmt.Sprint(in.A + in.B), nil
	}))
}
