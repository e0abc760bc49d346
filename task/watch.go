// SPDX-License-Identifier: Apache-2.0

package task

import (
	fiducial "github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/llm"
)

// sink writes the engine's events that belong into the transcript, and passes all
// of them on.
func (r *runner) sink() fiducial.EventSink {
	return fiducial.EventFunc(func(ev fiducial.Event) {
		r.log(ev)
		if r.cfg.Events != nil {
			r.cfg.Events.Emit(ev)
		}
	})
}

func (r *runner) log(ev fiducial.Event) {
	switch d := ev.Data.(type) {
	case fiducial.GenerationFinished:
		r.cfg.Event("assistant", map[string]any{"op": d.Op, "message": d.Message, "usage": d.Usage})
	case fiducial.GenerationRetry:
		r.cfg.Event("request-retry", map[string]any{"op": d.Op, "attempt": d.Attempt, "max": d.Max, "wait_ms": d.Wait.Milliseconds(), "error": d.Err.Error()})
	case fiducial.ToolFinished:
		r.cfg.Event("tool", map[string]any{"op": d.Op, "ordinal": d.Ordinal, "result": d.Result, "ran": d.Ran})
	case fiducial.Steered:
		r.cfg.Event("user", map[string]any{"messages": d.Messages})
	case fiducial.Warning:
		r.cfg.Event("warning", map[string]any{"text": d.Text})
	case fiducial.CacheMiss:
		r.cfg.Event("cache-miss", map[string]any{"possible": d.Possible, "served": d.Served, "cause": d.Cause})
	case fiducial.StreamEvent:
		if f, ok := d.Event.(llm.Failover); ok {
			r.cfg.Event("provider-failover", failover(f))
		}
	case fiducial.RunStarted, fiducial.GenerationStarted, fiducial.Delta, fiducial.DraftReset, fiducial.GenerationCommitted,
		fiducial.ToolStarted, fiducial.NoticeAdded, fiducial.PruneEvaluated, fiducial.RunFinished:
	}
}

func failover(f llm.Failover) map[string]any {
	m := map[string]any{"from": f.From, "to": f.To}
	if f.Cause != nil {
		m["cause"] = f.Cause.Error()
	}
	return m
}
