package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fairshard/fairshard/admission/apply"
	"github.com/fairshard/fairshard/admission/decide"
	"github.com/fairshard/fairshard/admission/observe"
)

// loop is the one goroutine that decides and writes.
type loop struct {
	reader   client.Reader // cached
	writer   client.Client
	applier  *apply.Applier
	policy   decide.Policy
	dump     *dump
	period   time.Duration
	debounce time.Duration
	now      func() time.Time
	trigger  chan struct{} // room for one: a change is pending
	nudged   nudges
	waited   int // turns in a row that found the cache behind
	problems []string
}

// NeedLeaderElection: only the leader decides.
func (*loop) NeedLeaderElection() bool { return true }

// changed asks for a turn; called by informers.
func (l *loop) changed() {
	select {
	case l.trigger <- struct{}{}:
	default:
	}
}

// Start runs turns until ctx ends.
func (l *loop) Start(ctx context.Context) error {
	log := logf.FromContext(ctx).WithName("cycle")
	ctx = logf.IntoContext(ctx, log)
	log.Info("deciding starts", "period", l.period.String())
	for l.next(ctx) {
		if err := l.turn(ctx, log); err != nil && ctx.Err() == nil {
			log.Error(err, "cycle had problems, the next one tries again")
		}
	}
	return nil
}

// next waits for a change and then for the debounce, or for the period.
func (l *loop) next(ctx context.Context) bool {
	period := time.NewTimer(l.period)
	defer period.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-period.C:
		return true
	case <-l.trigger:
	}
	debounce := time.NewTimer(l.debounce)
	defer debounce.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-debounce.C:
	}
	// Changes that came during the debounce are seen by this turn.
	select {
	case <-l.trigger:
	default:
	}
	return true
}

// turn is one cycle.
func (l *loop) turn(ctx context.Context, log logr.Logger) error {
	start := l.now()
	view, err := observe.Read(ctx, l.reader)
	if err != nil {
		return err
	}
	if l.applier.Behind(view) {
		l.waited++
		log.V(1).Info("cache is behind our own writes, waiting for it", "turns", l.waited)
		return nil
	}
	l.waited = 0
	snapshot, problems := translate(view)
	l.tellProblems(log, problems)
	decisions := decide.Cycle(snapshot, l.policy, start)
	l.dump.keep(start, l.policy, snapshot, decisions)
	result, err := l.applier.Apply(ctx, view, decisions)
	err = errors.Join(err, l.checks(ctx, view), l.headroom(ctx, view), l.unresolved(ctx, view))
	l.report(log, len(snapshot.Workloads), decisions, result, start)
	return err
}

// report logs one line per cycle that did something, and the others on demand.
func (l *loop) report(log logr.Logger, workloads int, decisions []decide.Decision, result apply.Result, start time.Time) {
	held := 0
	for _, d := range decisions {
		if d.Kind == decide.Hold {
			held++
		}
	}
	if result.Started+result.Released+result.Evicted+result.Messages+result.Conflicts == 0 {
		log = log.V(1)
	}
	log.Info("cycle", "workloads", workloads, "started", result.Started, "released", result.Released, "evicted", result.Evicted, "held", held,
		"messages", result.Messages, "conflicts", result.Conflicts, "skipped", result.Skipped, "took", l.now().Sub(start).Round(time.Millisecond).String())
}

// tellProblems logs what is wrong with queues when that changes.
func (l *loop) tellProblems(log logr.Logger, problems []string) {
	if slices.Equal(problems, l.problems) {
		return
	}
	l.problems = problems
	for _, problem := range problems {
		log.Info("queue is not as it should be", "problem", problem)
	}
}
