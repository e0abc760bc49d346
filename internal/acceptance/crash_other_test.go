//go:build !linux

package acceptance

import "errors"

func mountSmall(string, int) error { return errors.ErrUnsupported }
func unmount(string) error         { return errors.ErrUnsupported }
