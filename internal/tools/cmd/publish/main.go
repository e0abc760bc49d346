// SPDX-License-Identifier: Apache-2.0

// Command publish checks and prepares releases of the modules of this repository.
//
//	publish check [-offline]     publish the committed tree into a proxy of its own and use it
//	publish contents             hold what is in the committed tree's modules to its list, and no more
//	publish alone [-run REGEXP] [-module DIR]
//	                             build, vet and test every module by itself, or one, with the oldest Go that it states
//	publish api [-version V]     compare the exported API with the last tag
//	publish docs                 hold the documentation of every exported name
//	publish licences             write THIRD_PARTY.md
//	publish cross [-platform P]  build the command for every platform, or for one such as linux/amd64
//	publish release [-do] [-branch NAME] VERSION
//	                             print, or with -do make, the release of all modules
//
// It is run from the root of the repository. Exit status: 0, 1 for what is wrong,
// 2 for wrong usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/fiducial-dev/fiducial/internal/tools/publish"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

var errUsage = errors.New("usage: publish check|contents|alone|api|docs|licences|cross|release [flags]")

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := errUsage
	if len(args) > 0 {
		err = dispatch(ctx, args[0], args[1:], stdout)
	}
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprintln(stderr, err)
		return 2
	default:
		fmt.Fprintln(stderr, "publish:", err)
		return 1
	}
}

func dispatch(ctx context.Context, name string, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("publish "+name, flag.ContinueOnError)
	t := publish.Trial{Repo: ".", Work: ".tmp/publish", Env: os.Environ(), Out: stdout}
	var act func() error
	switch name {
	case "check":
		flags.BoolVar(&t.Offline, "offline", false, "use no network: third parties come from the module cache")
		act = func() error { return publish.Check(ctx, t) }
	case "contents":
		t.Work = ".tmp/publish/contents"
		act = func() error { return publish.CheckContents(ctx, t) }
	case "alone":
		match := flags.String("run", "^$", "run the tests that match; all are linked")
		only := flags.String("module", "", "the folder of the only module to build; all when empty")
		act = func() error { return publish.Alone(ctx, t, *match, *only) }
	case "api":
		version := flags.String("version", "", "the release that is planned")
		act = func() error { return publish.API(ctx, t, *version) }
	case "docs":
		act = func() error { return publish.Docs(ctx, t) }
	case "licences":
		act = func() error { return publish.Licences(ctx, t) }
	case "cross":
		name := flags.String("platform", "", "the only one to build for, such as linux/amd64; all when empty")
		act = func() error { return cross(ctx, t, *name) }
	case "release":
		do := flags.Bool("do", false, "make the commit and the tags; nothing is pushed")
		green := flags.String("green", "make check publish-check", "the command that tells whether the tree is green")
		flags.StringVar(&t.Branch, "branch", "main", "the branch that releases are made from, which -do wants HEAD to be on")
		act = func() error {
			t.Draft = !*do
			return release(ctx, t, flags.Args(), strings.Fields(*green), *do)
		}
	default:
		return errUsage
	}
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return act()
}

func cross(ctx context.Context, t publish.Trial, name string) error {
	platforms, err := publish.ParsePlatform(name)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return publish.Cross(ctx, t, platforms)
}

// release plans, and with do makes, the release of the one version in args.
func release(ctx context.Context, t publish.Trial, args, green []string, do bool) error {
	if len(args) != 1 {
		return errUsage
	}
	plan, err := publish.Release(ctx, t, args[0], green)
	if err != nil {
		return err
	}
	fmt.Fprint(t.Out, plan)
	if !do {
		return nil
	}
	commit, err := plan.Make(ctx, t)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.Out, "\nMade commit %s and its tags. Nothing was pushed.\n", commit)
	return nil
}
