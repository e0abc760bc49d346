// SPDX-License-Identifier: Apache-2.0

// Rounds prints what a round costs, ours and our peers', in markdown:
// GOWORK=off go run ./cmd/rounds
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/fiducial-dev/fiducial/bench"
)

func main() {
	var o bench.Options
	flag.IntVar(&o.Rounds, "rounds", 20_000, "rounds to measure, for each figure and repetition")
	flag.IntVar(&o.Repetitions, "repetitions", 5, "repetitions; the best counts")
	flag.IntVar(&o.Paused, "paused", 10_000, "runs to pause")
	flag.Parse()
	if err := bench.Run(context.Background(), os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
