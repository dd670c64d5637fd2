package istio_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// writer is what /api/v1/writers says of the only output that writes.
type writer struct {
	State   string
	Reason  string
	Pending int
	Drift   int
	Failed  []struct{ Object, Reason string }
	Held    []struct {
		Object, Reason, Age string
		Endpoints           int
	}
}

func (i *isthmus) writer() (writer, error) {
	var writers []writer
	if err := i.ask(http.MethodGet, "/api/v1/writers", &writers); err != nil {
		return writer{}, err
	}
	if len(writers) != 1 {
		return writer{}, fmt.Errorf("there are %d writers", len(writers))
	}
	return writers[0], nil
}

// AwaitWriter waits until the writer is in a state.
func (i *isthmus) AwaitWriter(state string) {
	i.t.Helper()
	await(i.t, "the writer to be "+state, func() error {
		w, err := i.writer()
		if err == nil && w.State != state {
			err = fmt.Errorf("it is %+v", w)
		}
		return err
	})
}

// AwaitRejection waits until it is shown that an object cannot be written, and why.
func (i *isthmus) AwaitRejection(object, why string) {
	i.t.Helper()
	i.awaitRejection(i.t, object, why)
}

func (i *isthmus) awaitRejection(t testing.TB, object, why string) {
	t.Helper()
	await(t, fmt.Sprintf("%s to be rejected: %s", object, why), func() error {
		w, err := i.writer()
		if err != nil {
			return err
		}
		for _, f := range w.Failed {
			if strings.Contains(f.Object, object) && strings.Contains(f.Reason, why) {
				return nil
			}
		}
		return fmt.Errorf("rejected are %+v", w.Failed)
	})
}

// AwaitHeld waits until an object is left as it is.
func (i *isthmus) AwaitHeld(object string) {
	i.t.Helper()
	await(i.t, object+" to be held", func() error {
		w, err := i.writer()
		if err != nil {
			return err
		}
		for _, h := range w.Held {
			if strings.HasSuffix(h.Object, "/"+object) {
				return nil
			}
		}
		return fmt.Errorf("the writer is %+v", w)
	})
}

// MustHaveRestored is that so many objects were restored after others had
// changed them.
func (i *isthmus) MustHaveRestored(count int) {
	i.t.Helper()
	await(i.t, fmt.Sprintf("%d objects to be restored", count), func() error {
		w, err := i.writer()
		if err == nil && w.Drift < count { // a write is in the API server before it is counted
			err = fmt.Errorf("%d were restored", w.Drift)
		}
		if err == nil && w.Drift > count {
			i.t.Errorf("%d objects were restored, and should have been %d", w.Drift, count)
		}
		return err
	})
}
