// SPDX-License-Identifier: Apache-2.0

package llmtest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
)

// A server that speaks the formats of the providers answers from a script. What goes
// over the wire is kept in files, and replayed without the server.
func Example_recordAndReplay() {
	dir, err := os.MkdirTemp("", "recordings")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	srv := llmtest.NewServer(llmtest.NewScript(llmtest.Say("Hello.")))
	defer srv.Close()

	ask := func(c *http.Client, text string) { // a client of a provider does this
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, srv.URL+"/v1/chat/completions",
			strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"`+text+`"}]}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := c.Do(req)
		if err != nil {
			fmt.Println(llm.ClassOf(err))
			return
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		fmt.Println(strings.Contains(string(body), "Hello."), err)
	}
	ask(&http.Client{Transport: llmtest.NewRecorder(nil, dir, "my-secret-key")}, "Hi!")

	replayer, err := llmtest.NewReplayer(dir, "my-secret-key")
	if err != nil {
		fmt.Println(err)
		return
	}
	ask(&http.Client{Transport: replayer}, "Hi!")
	ask(&http.Client{Transport: replayer}, "Ho!") // one too many: no engine tries it again
	// Output:
	// true <nil>
	// true <nil>
	// invalid_request
}
