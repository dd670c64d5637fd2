package source

import "context"

// Hold returns which drops of the source are held.
func (s *Supervisor) Hold() Hold { return s.cfg.Hold }

// Lacks tells how many endpoints somebody else knows of the source, and keeps
// although it has not listed them since the start: a system that is written to,
// where the store remembers nothing. Until it is told otherwise the source is
// asked to list again. What it loses besides is judged as if those that are
// suspected were held here: the others have been missing for so long that they
// say nothing about what goes missing now. It fails only if ctx ends before it
// can be told.
func (s *Supervisor) Lacks(ctx context.Context, endpoints, suspected int) error {
	done, err := s.write(ctx)
	if err != nil {
		return err
	}
	defer done()
	s.elsewhere, s.suspected = endpoints, suspected
	s.ask(false)
	return nil
}

// Succeed takes over what others keep of the source from a supervisor of it that
// has returned. It comes before Run, and fails only if ctx ends.
func (s *Supervisor) Succeed(ctx context.Context, before *Supervisor) error {
	done, err := before.write(ctx)
	if err != nil {
		return err
	}
	defer done()
	s.elsewhere, s.suspected = before.elsewhere, before.suspected
	return nil
}

// Unread reports whether the last reading of the registry left out something
// that is there, as it could not be taken. Of what is not stored either, nobody
// can tell whether it is that or is gone.
func (s *Supervisor) Unread() bool { return len(s.Status().Refused) > 0 }

// ask has the source asked to list again while anything is held, counted from
// its last complete listing.
func (s *Supervisor) ask(listed bool) {
	held := !s.holds.empty() || s.elsewhere > 0
	switch {
	case !held:
		s.relist.Stop()
	case listed || !s.asking:
		s.relist.Reset(s.cfg.Hold.interval())
	}
	s.asking = held
}
