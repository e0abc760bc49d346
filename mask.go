package fiducial

import "github.com/fiducial-dev/fiducial/llm"

// Secrets are taken out before a message becomes history, so that what is in the
// journal is what was in memory. Opaque vendor data is signed or encrypted and is
// not touched; a thinking part with such data whose text holds a secret is left
// out whole.

func (c *core) mask(m llm.Message) llm.Message {
	if c.cfg.masker == nil {
		return m
	}
	out := m
	out.Parts = make([]llm.Part, 0, len(m.Parts))
	for _, p := range m.Parts {
		if p, keep := maskPart(c.cfg.masker, p); keep {
			out.Parts = append(out.Parts, p)
		}
	}
	return out
}

func (c *core) maskAll(messages []llm.Message) []llm.Message {
	if c.cfg.masker == nil {
		return messages
	}
	out := make([]llm.Message, len(messages))
	for i, m := range messages {
		out[i] = c.mask(m)
	}
	return out
}

func maskPart(k Masker, p llm.Part) (masked llm.Part, keep bool) {
	switch p := p.(type) {
	case llm.Text:
		p.Text = k.Text(p.Text)
		return p, true
	case llm.Thinking:
		if !p.Opaque.IsZero() && k.Found(p.Text) {
			return nil, false
		}
		p.Text = k.Text(p.Text)
		return p, true
	case llm.System:
		p.Text = k.Text(p.Text)
		return p, true
	case llm.Call:
		p.Args = k.Text(p.Args)
		return p, true
	case llm.Result:
		return maskResult(k, p), true
	case llm.Image:
		return p, true
	}
	return p, true
}

func maskResult(k Masker, r llm.Result) llm.Result {
	if k == nil {
		return r
	}
	r.Summary, r.Content = k.Text(r.Summary), k.Text(r.Content)
	return r
}
