// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"
)

// newRoot makes the command with all that is below it.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "fiducial",
		Short: "A design agent for KiCad boards, judged by kicad-cli",
		Long: `fiducial changes a KiCad project the way a coding agent changes a code base: a request in words, edits to the real
files, and nothing counts as done before ERC and DRC of the real kicad-cli agree. What passed is one git commit; what
did not is put back byte for byte.

Start with doctor, which says what is missing here and what to do about it, then check, which needs neither a model nor
a network nor git.`,
		Example: `  fiducial do "rename net A to B"      a request, carried out, verified and committed
  fiducial doctor                      what is installed, what is missing, what to do
  fiducial check                       ERC, DRC, documents and constraints of the project in this folder
  fiducial check --baseline main       only what is new since the branch main fails
  fiducial check --repo ../amplifier   a project somewhere else
  fiducial init                        make the documents from the design
  fiducial hook install                check every commit before it is made
  fiducial runs                        what was done here before
  fiducial show last                   one run: outcome, files, tokens, summary
  fiducial show --follow               what a run does, as it happens, from another terminal`,
		SilenceErrors: true, SilenceUsage: true,
	}
	var version bool
	root.Flags().BoolVar(&version, "version", false, "say which fiducial this is, as the command version does")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if version {
			return a.tellVersion(cmd.Context(), false)
		}
		return cmd.Help()
	}
	flags := root.PersistentFlags()
	flags.StringVarP(&a.repo, "repo", "C", ".", "the folder to work in; the project may be in it, below it or above it")
	flags.StringVar(&a.project, "project", "", "the project's .kicad_pro, relative to --repo, where there are several")
	flags.BoolVar(&a.json, "json", false, "one JSON object on stdout")
	flags.BoolVar(&a.plain, "plain", false, "no colours and no live line, as when stdout is no terminal")
	flags.StringVar(&a.kicadCLI, "kicad-cli", "", "the kicad-cli to run (default: the one in PATH)")
	flags.DurationVar(&a.limit, "kicad-limit", 0, "time limit of each run of kicad-cli, such as 90s (default: by the size of the design)")
	root.CompletionOptions.HiddenDefaultCmd = true

	root.AddCommand(
		newDo(a),
		newResume(a),
		newInit(a),
		newCheck(a),
		newDoctor(a),
		newRuns(a),
		newShow(a),
		newDiff(a),
		newUndo(a),
		newRecover(a),
		newJournal(a),
		newExport(a),
		newHook(a),
		newVersion(a),
		newExitCodes(),
	)
	return root
}

// newExitCodes is a help topic: a command that does nothing.
func newExitCodes() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes mean",
		Long: `Exit codes:

    0    check, hook: clean. do, resume: done. doctor: the main job can run here. resume --give-up: the tree is as it was.
         Others: done; show --follow: the run has ended, however it did.
    1    check, hook: there are findings. do, resume: refused or failed, and the tree is as it was unless a warning says
         otherwise. doctor: something is missing. init: documents were changed by hand. export: parts were left out.
         journal prune: some runs could not be deleted.
    2    it could not run: no kicad-cli or one that is too old, a file that does not load, no project, no such run, a
         journal that cannot be reached, a time limit, wrong usage. Nothing was decided, and nothing was changed.
  130    interrupted by Ctrl-C or SIGTERM. A second one kills the command at once.

With --json what went wrong is an object on stdout as well: error, remedies [], exit_code.`,
	}
}
