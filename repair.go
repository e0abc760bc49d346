// SPDX-License-Identifier: Apache-2.0

package fiducial

import "github.com/fiducial-dev/fiducial/machine"

// doubt takes up a run whose log was cut behind its last step because it was
// damaged (see [journal.RepairedNote]). A call that looks as if it had not started
// may have run: it counts as started, so that it is unknown, or runs again when its
// tool may be repeated. A pause stays.
func (c *core) doubt(op string) error {
	p, pending := c.state.Pending()
	if !pending || p.Kind != machine.PendingTools {
		return nil
	}
	var started []machine.StartedCall
	for i, call := range c.state.Batch() {
		if call.Status == machine.CallWaiting {
			started = append(started, machine.StartedCall{Ordinal: i, Repeat: c.traitsOf(call.Call.Name).Repeatable()})
		}
	}
	if len(started) == 0 {
		return nil
	}
	var inputs []machine.Input
	pause, paused := c.state.Effect().(machine.Paused)
	if paused {
		inputs = append(inputs, machine.Resume{})
	}
	inputs = append(inputs, machine.Started{Op: p.Op, Calls: started}, machine.Recovered{Doubt: true})
	if paused {
		inputs = append(inputs, machine.Pause{Reason: pause.Reason})
	}
	for _, in := range inputs {
		if err := step(c, op, in); err != nil {
			return err
		}
	}
	return nil
}
