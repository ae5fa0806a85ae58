package decide

// preempt makes less important work of the same queue give way to a; as in
// reclaim, not to surplus pods that more important work would take over.
func (p *planner) preempt(a ask) bool {
	j := &p.jobs[a.job]
	if !p.mayMakeRoom(a) || a.surplus && p.line.moreImportant(a) {
		return false
	}
	list := p.chunks(victimsKey{leaf: j.leaf})
	if len(list) == 0 || p.jobs[list[0].job].w.Priority >= j.w.Priority {
		return false
	}
	key := futileKey{leaf: j.leaf, fit: p.fitKey(a), own: true}
	if p.isFutile(key, j.w.Priority) {
		return false
	}
	t := p.begin(a)
	t.own = true
	if t.gather(t.fromOwn(false), nil) {
		t.improve(func(map[int]int32) bool { return t.gather(t.fromOwn(true), nil) }, t.preemptible)
		return p.commit(t)
	}
	p.noteProtected(a, t.protected)
	p.noteFutile(key, j.w.Priority)
	return false
}

// preemptible judges a chunk of the requester's own queue.
func (t *trial) preemptible(c chunk) (victim, bool) {
	leaf := t.j.leaf
	v := victim{chunk: c, rule: RulePreempt, at: leaf, against: leaf, usedAt: t.used[leaf], usedBy: t.used[leaf]}
	return v, t.p.jobs[c.job].w.Priority < t.j.w.Priority && t.takeable(c, true)
}

// fromOwn yields victims of the requester's own queue.
func (t *trial) fromOwn(biggest bool) source {
	list := t.p.chunks(victimsKey{t.j.leaf, biggest})
	return source{next: func() (victim, bool) {
		for len(list) > 0 {
			c := list[0]
			list = list[1:]
			if v, may := t.preemptible(c); may {
				return v, true
			}
		}
		return victim{}, false
	}}
}
