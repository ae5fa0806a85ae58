package health

import (
	"errors"
	"fmt"
	"slices"
)

const (
	defaultQuiet = 60 * 60
	// keptTimes is how many occurrences of a condition are remembered, and so the
	// most that a Repeat can ask for.
	keptTimes = 8
	// maxSeconds bounds every duration of a policy.
	maxSeconds = 30 * day
)

// Policy is the table with the administrator's overrides. The zero value is the
// table as it is.
type Policy struct {
	overrides map[Cause]Rule
	quiet     int64
}

// Override replaces the rule of one cause: "xid-94", "lost", or "xid-other" for
// every XID without a row. Class and Repeats count as they are, so no Repeats means
// that repetition changes nothing; an empty Repair is that of the table.
type Override struct {
	Cause   Cause
	Class   Class
	Repair  Repair
	Repeats []Repeat
}

// NewPolicy checks overrides and reports everything that is wrong with them.
// Quiet is the time in seconds after which conditions with RepairQuiet close; 0 for an hour.
func NewPolicy(quiet int64, overrides []Override) (Policy, error) {
	var problems []error
	if quiet < 0 || quiet > maxSeconds {
		problems = append(problems, fmt.Errorf("the quiet time is %d s: give 0 to %d", quiet, maxSeconds))
	}
	p := Policy{overrides: map[Cause]Rule{}, quiet: quiet}
	for _, o := range overrides {
		if _, twice := p.overrides[o.Cause]; twice {
			problems = append(problems, fmt.Errorf("cause %q has two overrides: remove one", o.Cause))
		}
		if !o.Cause.known() {
			problems = append(problems, fmt.Errorf("cause %q is not known: give xid-1 to xid-%d, %s, or one of %v", o.Cause, maxXID, CauseOtherXID, factCauses()))
			continue
		}
		rule, err := o.over(Policy{}.rule(o.Cause))
		if err != nil {
			problems = append(problems, fmt.Errorf("override of %s: %w", o.Cause, err))
		}
		p.overrides[o.Cause] = rule
	}
	if err := errors.Join(problems...); err != nil {
		return Policy{}, fmt.Errorf("check health policy: %w", err)
	}
	return p, nil
}

// over returns r with what o replaces, or what is wrong with that.
func (o Override) over(r Rule) (Rule, error) {
	signal := r.Repair == RepairSignal
	r.Class, r.Repeats = o.Class, slices.Clone(o.Repeats)
	if o.Repair != "" {
		r.Repair = o.Repair
	}
	if err := check(r.Class, r.Repair, signal); err != nil {
		return Rule{}, err
	}
	if len(r.Repeats) >= keptTimes {
		return Rule{}, fmt.Errorf("it has %d repeats: give at most %d", len(r.Repeats), keptTimes-1)
	}
	times, class := 1, r.Class
	for _, repeat := range r.Repeats {
		switch {
		case repeat.Times <= times || repeat.Times > keptTimes:
			return Rule{}, fmt.Errorf("a repeat after %d times follows %d: the numbers must rise, from 2 to %d", repeat.Times, times, keptTimes)
		case repeat.Within <= 0 || repeat.Within > maxSeconds:
			return Rule{}, fmt.Errorf("a repeat is within %d s: give 1 to %d", repeat.Within, maxSeconds)
		case repeat.Class.rank() < class.rank():
			return Rule{}, fmt.Errorf("class %q after %d times is milder than %q before: a repeat must not make it better", repeat.Class, repeat.Times, class)
		}
		if err := check(repeat.Class, repeat.Repair, signal); err != nil {
			return Rule{}, err
		}
		times, class = repeat.Times, repeat.Class
	}
	return r, nil
}

// check judges one step of a rule; signal says whether its condition is one that
// only its signal can close.
func check(class Class, repair Repair, signal bool) error {
	switch {
	case class.rank() < 0:
		return fmt.Errorf("class %q is not known: give one of %v", class, allClasses)
	case !slices.Contains(allRepairs, repair):
		return fmt.Errorf("repair %q is not known: give one of %v", repair, allRepairs)
	case signal && repair != RepairSignal:
		return fmt.Errorf("repair %q cannot close it, since it is over when the driver says so: give %q", repair, RepairSignal)
	case !signal && repair == RepairSignal:
		return fmt.Errorf("repair %q would never close it, since nothing says that it is over: give another", repair)
	}
	return nil
}

// rule returns what c means; an XID without a row means what CauseOtherXID does.
func (p Policy) rule(c Cause) Rule {
	if rule, ok := p.overrides[c]; ok {
		return rule
	}
	if rule, ok := table[c]; ok {
		return rule
	}
	if rule, ok := p.overrides[CauseOtherXID]; ok {
		return rule
	}
	return table[CauseOtherXID]
}

// quietTime is in seconds.
func (p Policy) quietTime() int64 {
	if p.quiet == 0 {
		return defaultQuiet
	}
	return p.quiet
}

func factCauses() []Cause {
	var causes []Cause
	for c := range factRows {
		if c != CauseOtherXID {
			causes = append(causes, c)
		}
	}
	slices.Sort(causes)
	return causes
}
