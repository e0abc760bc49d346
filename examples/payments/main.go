// SPDX-License-Identifier: Apache-2.0

// Payments is an agent whose effects cost money, so it must not matter when its
// process dies: go run ./examples/payments folder, end it whenever you like, and start
// it again. Its test ends it before and after each of its writes.
package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"os"
	"path/filepath"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/tool"
)

func main() {
	if err := start(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func start(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: payments folder")
	}
	j, err := openJournal(args[0])
	if err != nil {
		return err
	}
	out, err := pay(ctx, args[0], j, clerk{})
	if err == nil {
		fmt.Println(out.Text())
	}
	return errors.Join(err, j.Close())
}

func openJournal(dir string) (journal.Journal, error) {
	return journal.OpenFolder(filepath.Join(dir, "journal"), journal.FolderOptions{})
}

// pay starts the run, or goes on with it when an earlier process began it.
func pay(ctx context.Context, dir string, j journal.Journal, model llm.Client) (out fiducial.Outcome, err error) {
	b := bank{dir}
	l, err := fiducial.New(model, fiducial.WithSystem("You pay bills."), fiducial.WithJournal(j, "run-1"), fiducial.WithTools(
		tool.Must(tool.New("wire", "Wires money. A second call wires it again.", b.wire)),
		tool.Must(tool.New("order", "Hands in an order, which the bank executes once.", b.order, tool.Idempotent())),
	)).Lock()
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, l.Close(ctx)) }()
	out, err = l.Resume(ctx)
	if errors.Is(err, fiducial.ErrNothing) { // the run has not begun
		out, err = l.Run(ctx, llm.UserText("Pay the rent and the phone."))
	}
	return out, err
}

// A bank is a folder.
type bank struct{ dir string }

type bill struct {
	To string `json:"to" jsonschema:"who gets the money"`
}

// wire cannot be repeated: each call is one more line.
func (b bank) wire(_ context.Context, in bill) (string, error) {
	f, err := os.OpenFile(filepath.Join(b.dir, "wired.txt"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintln(f, in.To)
	return "wired", errors.Join(err, f.Close())
}

// order can: the call's key is the same however often the call is made, and the bank
// keeps one order for each key.
func (b bank) order(ctx context.Context, in bill) (string, error) {
	call, ok := tool.FromContext(ctx)
	if !ok {
		return "", errors.New("an order needs the key of its call")
	}
	file := filepath.Join(b.dir, "order-"+url.PathEscape(call.Key())+".txt")
	return "ordered", os.WriteFile(file, []byte(in.To+"\n"), 0o600)
}

// clerk is a model of three rules: first the rent is wired, then the phone is
// ordered, then it says what it knows.
type clerk struct{}

func (clerk) Stream(_ context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	var results []llm.Result
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			if r, ok := p.(llm.Result); ok {
				results = append(results, r)
			}
		}
	}
	reply := llm.AssistantCalls(llm.Call{Name: "wire", Args: `{"to":"landlord"}`})
	switch len(results) {
	case 1:
		reply = llm.AssistantCalls(llm.Call{Name: "order", Args: `{"to":"phone company"}`})
	case 2:
		reply = llm.AssistantText(fmt.Sprintf("rent: %s; phone: %s", results[0].Status, results[1].Status))
	}
	return collect.Events(collect.Reply{Message: reply})
}
