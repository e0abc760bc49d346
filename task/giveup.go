// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"time"
)

// GiveUp ends a run that another process began and did not end, without going on
// with it: its changes are kept and the tree is put back.
func GiveUp(ctx context.Context, cfg Config) (*Result, error) {
	lock, err := cfg.Repo.Lock(ctx, cfg.Run, time.Now())
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Release() }() // the kernel frees it at the latest with the process
	snap, err := cfg.Repo.Reopen(ctx, cfg.Run)
	if err != nil {
		return nil, err
	}
	if cfg.Event == nil {
		cfg.Event = func(string, any) {}
	}
	r := &runner{cfg: cfg, snap: snap, rules: NewRules(RulesConfig{}), resumed: true}
	if c := snap.Committed(); c != "" {
		r.result.Run = cfg.Run
		r.landed(ctx, c)
		return &r.result, nil
	}
	r.result = Result{Run: cfg.Run, Path: PathCancelled, Detail: "the run was interrupted and given up"}
	r.failed(context.WithoutCancel(ctx))
	r.cfg.Event("run-end", r.end())
	return &r.result, nil
}
