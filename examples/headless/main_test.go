// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
)

func Example() {
	if err := run(context.Background(), []string{"20", "22"}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// call add {"a":20,"b":22}
	// result 42
	// The sum is 42.
}
