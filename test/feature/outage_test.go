package feature_test

import "testing"

func TestRegistryThatIsGoneLeavesEverythingServed(t *testing.T) {
	t.Parallel()
	first, second := newRegistry(t, "first"), newRegistry(t, "second")
	b := startBackends(t, "one", "two", "other")
	first.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])})
	second.Write("shop.yaml", service{Host: ratings, Endpoints: endpoints(b[2])})
	isthmus := start(t, first, second)
	client, other := dial(t, isthmus, reviews+":80", "shop"), dial(t, isthmus, ratings+":80", "shop")
	client.AwaitAnswers("one")
	other.AwaitAnswers("other")
	calls := client.KeepCalling()

	first.Remove("")
	isthmus.AwaitSource("first", "stale", "no such file or directory; trying again within")
	client.AwaitAnswers("one")
	dial(t, isthmus, reviews+":80", "").AwaitAnswers("one") // newcomers get it, too
	if code, body, err := isthmus.get("/readyz"); code != 200 || err != nil {
		t.Errorf("an Isthmus with a stale source is not ready: %d %s %v", code, body, err)
	}
	// The other source is followed all the while.
	second.Write("shop.yaml", service{Host: ratings, Endpoints: endpoints(b[1])})
	other.AwaitAnswers("two")

	// It comes back whole: an empty folder would be an answer, and a true one.
	back := newRegistry(t, "back")
	back.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0], b[1])})
	first.Return(back)
	isthmus.AwaitSource("first", "live", "")
	client.AwaitAnswers("one", "two")
	first.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[1])})
	client.AwaitAnswers("two")
	calls.MustNotHaveFailed()
}

func TestRegistryMayBeReplacedAsAWhole(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "one", "two")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])})
	isthmus := start(t, files)
	client := dial(t, isthmus, reviews+":80", "shop")
	client.AwaitAnswers("one")
	calls := client.KeepCalling()

	// As a checkout is swapped: the new folder takes the old one's name.
	next := newRegistry(t, "next")
	next.Write("deeper/shop.yaml", service{Host: reviews, Endpoints: endpoints(b[1])})
	files.Replace(next)
	client.AwaitAnswers("two")
	isthmus.AwaitSource("files", "live", "")

	// The new folder is followed, and not the old one.
	files.Write("deeper/shop.yaml", service{Host: reviews, Endpoints: endpoints(b...)})
	client.AwaitAnswers("one", "two")
	calls.MustNotHaveFailed()
}

// TestFileMayBeWrittenInPlace has an editor that empties a file and then fills it.
func TestFileMayBeWrittenInPlace(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "one", "two")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])})
	client := dial(t, start(t, files), reviews+":80", "shop")
	client.AwaitAnswers("one")
	calls := client.KeepCalling()
	for n := range 10 {
		next := b[(n+1)%2]
		files.Overwrite("shop.yaml", service{Host: reviews, Endpoints: endpoints(next)})
		client.AwaitAnswers(next.Name)
	}
	calls.MustNotHaveFailed()
}

// TestVolumeOfKubernetesIsFollowed has the folder as a ConfigMap is mounted:
// files are links into a folder that a link is swapped to.
func TestVolumeOfKubernetesIsFollowed(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "one", "two")
	files.Write("..2026_1/shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])})
	files.Link("..2026_1", "..data")
	files.Link("..data/shop.yaml", "shop.yaml")
	isthmus := start(t, files)
	client := dial(t, isthmus, reviews+":80", "shop")
	client.AwaitAnswers("one")
	calls := client.KeepCalling()

	files.Write("..2026_2/shop.yaml", service{Host: reviews, Endpoints: endpoints(b[1])})
	files.Link("..2026_2", "..data_tmp")
	files.Move("..data_tmp", "..data")
	files.Remove("..2026_1")
	client.AwaitAnswers("two")
	calls.MustNotHaveFailed()
}
