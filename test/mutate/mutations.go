package main

// rows are the mutations, by the package with the doc that makes the promise.
var rows = []row{
	// Package push.
	{
		file: "push/request.go", killer: "./push", run: "TestUrgentRemovalWaitsForNoReplacement",
		text:        `s.engine.index.Add(&i.Entry, slices.Values(added))`,
		replacement: `_ = slices.Values(added)`,
		promise:     "a name is in the index, so that its changes are marked",
	},
	{
		file: "push/queue/queue.go", killer: "./push/queue",
		text:        `if p.urgent {`,
		replacement: `if false {`,
		promise:     "a subscriber with an urgent change has its turn first",
	},
	{
		file: "push/queue/queue.go", killer: "./push/queue",
		text:        `q.urgent.first == nil || q.overtaken == Overtakes`,
		replacement: `q.urgent.first == nil`,
		promise:     "of five turns at least one is for a subscriber without an urgent change",
	},
	{
		file: "push/inbox.go", killer: "./push",
		text:        `now = before.and(now)`,
		replacement: `_ = before`,
		promise:     "changes made while the dispatcher was busy are joined, and none is lost",
	},
	{
		file: "push/dispatch.go", killer: "./push",
		text:        `case at.After(now):`,
		replacement: `case false:`,
		promise:     "a type defines how long its changes wait",
	},
	{
		file: "push/dispatch.go", killer: "./push",
		text:        "if !planned { // the affected subscribers are unknown\n\t\te.failAll()",
		replacement: "if !planned { // the affected subscribers are unknown",
		promise:     "a panic in a producer's code costs at worst all streams, which end",
	},
	{
		file: "push/interest.go", killer: "./push",
		text:        `return !m.blocked || len(m.names) > tooMany`,
		replacement: `return true`,
		promise:     "a client that does not answer costs a mark for each change, and no turn",
	},
	{
		file: "push/holdings.go", killer: "./push",
		text:        `budget != "" && each > h.limits.Each`,
		replacement: `budget != "" && each > h.limits.Total`,
		promise:     "the names that clients may ask for are bounded in bytes",
	},

	// Package push/session.
	{
		file: "push/session/look.go", killer: "./push",
		text:        `return l.Sources[info.Producer]`,
		replacement: "if s := l.Sources[info.Producer]; s.World != nil {\n\t\treturn s\n\t}\n\treturn Source{World: world.Nothing{}}",
		promise:     "a type with a producer that has published nothing is not answered",
	},
	{
		file: "push/session/relations.go", killer: "./push",
		text:        `if by == (obstacle{}) {`,
		replacement: `if true {`,
		promise:     "a resource waits for the ACK of the resources that it needs",
	},
	{
		file: "push/session/relations.go", killer: "./push",
		text:        `!other.guard && other.settled < p.step`,
		replacement: `!other.guard && false`,
		promise:     "a removal waits for the resources that may refer to it",
	},
	{
		file: "push/session/relations.go", killer: "./push",
		text:        `if p.Revoked {`,
		replacement: `if false {`,
		promise:     "a revocation waits for nothing",
	},
	{
		file: "push/session/relations.go", killer: "./push", run: "TestReferencesGoByTheNamesOfTheResource",
		text:        `d.demand(other, subject, p)`,
		replacement: `_ = other`,
		promise:     "the resources that a resource brings are sent right behind it",
	},
	{
		file: "push/session/inflight.go", killer: "./push",
		text:        `return r != nil && !r.overdue`,
		replacement: `return r != nil && r.overdue`,
		promise:     "a subscriber has at most one unanswered response of a type",
	},
	{
		file: "push/session/answer.go", killer: "./push", run: "TestOverdueResponse",
		text:        `r.overdue = true`,
		replacement: `r.overdue = false`,
		promise:     "past its patience, the newest response is sent nevertheless",
	},
	{
		file: "push/session/answer.go", killer: "./push", run: "TestBadResourceIsSingledOut",
		text:        `group = max(1, (r.brought+1)/2)`,
		replacement: `group = 0`,
		promise:     "resources that were NACKed together are retried in smaller groups",
	},
	{
		file: "push/session/nacks.go", killer: "./push",
		text:        `return was && n.member == m`,
		replacement: `return was && n.member != m`,
		promise:     "a resource that was NACKed alone is not sent again until it changes",
	},
	{
		file: "push/session/advance.go", killer: "./push",
		text:        `same := h != nil && h.is(res.Own.Member) && !p.again()`,
		replacement: `same := h != nil && h.is(res.Own.Member) && !p.again() && h.known != sent`,
		promise:     "a resource is sent only if its version differs from the held one",
	},
	{
		file: "push/session/agenda.go", killer: "./push", run: "TestUrgentResourcesGoFirst",
		text:        `first := len(names)`,
		replacement: `first := 0`,
		promise:     "in a response the urgent resources come first",
	},
	{
		file: "push/session/advance.go", killer: "./push", run: "BeforeEverythingIsListed",
		text:        `s.guard = lacks && sum != *s.claim`,
		replacement: `s.guard = lacks && sum == *s.claim`,
		promise:     "a client that resumes keeps its resources until every source is listed",
	},
	{
		file: "push/session/advance.go", killer: "./push",
		text:        `d.out.First, d.out.Ends = true, d.again == 0 && d.waiting() == 0`,
		replacement: `d.out.First, d.out.Ends = true, true`,
		promise:     "the last response of a first state is marked, and no other",
	},

	// Package source/hold.
	{
		file: "source/hold/config.go", killer: "./source/supervise",
		text:        `return listings >= confirmations &&`,
		replacement: `return listings >= confirmations-1 &&`,
		promise:     "a held record is deleted after three listings that lack it",
	},
	{
		file: "source/hold/config.go", killer: "./source/supervise",
		text:        `&& now.Sub(first) >= c.For`,
		replacement: ``,
		promise:     "the listings that confirm a drop span Config.For",
	},
	{
		file: "source/hold/decision.go", killer: "./source/supervise",
		text:        "h.Has(is) {\n\t\t\tp.back = append(p.back, is)",
		replacement: "h.Has(is) {\n\t\t\t_ = is",
		promise:     "a listing that contains a held record ends its hold",
	},
	{
		file: "source/hold/suspicion.go", killer: "./source/supervise",
		text:        `c.judgesAll() && (f.Nothing || f.Replaced > c.Min)`,
		replacement: `c.judgesAll() && f.Replaced > c.Min`,
		promise:     "a listing that lacks everything is a drop, however few it was",
	},
	{
		file: "source/hold/marks.go", killer: "./source/hold",
		text:        `listed = max(listed, b.after(ends).endpoints)`,
		replacement: `listed = max(listed, b.after(ends).held)`,
		promise:     "the mark of a service is the highest number within Config.For",
	},
	{
		file: "source/hold/marks.go", killer: "./source/hold", run: "TestEndOfAHoldHidesNoLoss",
		text:        `case b.all || e.since == 0 || e.since >= b.until.UnixNano():`,
		replacement: `case true:`,
		promise:     "the end of a held endpoint lowers no mark that never counted it",
	},
	{
		file: "source/hold/suspicion.go", killer: "./source/supervise", run: "TestStoreHoldsTheLastGoodOfEach",
		text:        `return max(0, n.Mark-n.Now)`,
		replacement: `return n.Mark - n.Now`,
		promise:     "a gain of one service makes up for no loss of another",
	},

	// Package source/supervise.
	{
		file: "source/supervise/supervisor.go", killer: "./source/supervise",
		text:        `if !wait.Sleep(ctx, s.status.ended(err, stackOf(err))) {`,
		replacement: `if wait.Sleep(ctx, s.status.ended(err, stackOf(err))) {`,
		promise:     "a failed source is run again",
	},
	{
		file: "source/supervise/supervisor.go", killer: "./source/supervise",
		text:        "if err != nil {\n\t\treturn 0, err\n\t}\n\treturn 0, errors.New(\"the source ended",
		replacement: "if err != nil {\n\t\t_ = Remove(ctx, s.mirror.store, s.mirror.source)\n\t\treturn 0, err\n\t}\n\treturn 0, errors.New(\"the source ended",
		promise:     "an error is never an empty list",
	},
	{
		file: "source/reading/compare.go", killer: "./source/supervise",
		text:        "if f, ok := r.rejected[have.Ref]; ok {\n\t\treturn f.reason",
		replacement: "if f, ok := r.rejected[have.Ref]; ok && f.reason == \"\" {\n\t\treturn f.reason",
		promise:     "a bad object keeps its last good version",
	},
	{
		file: "source/supervise/mirror.go", killer: "./source/supervise",
		text:        `writes = append(writes, m.ledger.Holds.Writes(m.source, m.ledger.Index, p.Writes, m.holds())...)`,
		replacement: ``,
		promise:     "the decision is committed with its Hold records",
	},

	// Package store.
	{
		file: "store/writing.go", killer: "./store", run: "PowerFailure",
		text:        `s.err = s.file.Sync()`,
		replacement: `s.err = nil`,
		promise:     "a snapshot is on disk before it has its name",
	},
	{
		file: "store/writing.go", killer: "./store", run: "PowerFailure",
		text:        `return s.in.folder.sync(s.in.files)`,
		replacement: `return nil`,
		promise:     "the name of a snapshot is on disk before earlier files are removed",
	},
	{
		file: "store/writing.go", killer: "./store", run: "PowerFailure",
		text:        `if err := j.file.Sync(); err != nil {`,
		replacement: `if err := error(nil); err != nil {`,
		promise:     "a journal is on disk before its commits are reported as saved",
	},
	{
		file: "store/writing.go", killer: "./store", run: "PowerFailure",
		text:        `if err := a.folder.sync(a.files); err != nil {`,
		replacement: `if err := error(nil); err != nil {`,
		promise:     "the name of a journal is on disk before its commits are reported as saved",
	},
	{
		file: "store/folder.go", killer: "./store", run: "PowerFailure",
		text:        `_ = folder(filepath.Dir(at)).sync(files)`,
		replacement: `_ = files`,
		promise:     "the names of the folder and its parents are on disk before the first commit is",
	},
	{
		file: "store/disk.go", killer: "./store", run: "PowerFailure",
		text:        `d.snapshot != nil && d.folder.sync(d.files) == nil {`,
		replacement: `d.snapshot != nil {`,
		promise:     "the names that a killed process left are on disk before files are removed",
	},
	{
		file: "store/folder.go", killer: "./store", run: "TestSync",
		text:        `return errors.Join(f.Sync(), f.Close())`,
		replacement: `return f.Close()`,
		promise:     "a sync reaches the operating system",
	},
	{
		file: "store/conflict.go", killer: "./store", run: "TestMemoryKeepsTheRules",
		text:        `case w.Revision != stored.Revision:`,
		replacement: `case w.Revision > stored.Revision:`,
		promise:     "every write is compare-and-set",
	},
	{
		file: "store/write.go", killer: "./store", run: "TestMemoryKeepsTheRules",
		text:        `case before.SameContent(w.Record):`,
		replacement: `case false:`,
		promise:     "a write that changes nothing causes no event and no revision",
	},
	{
		file: "store/history.go", killer: "./store", run: "TestTheHistoryIsBounded|TestAReaderMayLagByTheHistory",
		text:        `return events > h.bound.History || size > h.bound.HistoryBytes`,
		replacement: `return size > h.bound.HistoryBytes`,
		promise:     "commits are kept up to Config.History events",
	},

	// Package catalog.
	{
		file: "catalog/merge.go", killer: "./catalog", run: "TestMergeFollowsTheRules|TestTranscripts",
		text:        `cmp.Compare(a.rank, b.rank), cmp.Compare(a.ref.Source, b.ref.Source),`,
		replacement: `cmp.Compare(b.rank, a.rank), cmp.Compare(a.ref.Source, b.ref.Source),`,
		promise:     "the definition comes from the first source in the order",
	},
	{
		file: "catalog/merge.go", killer: "./catalog", run: "TestMergeFollowsTheRules",
		text:        `order.TrueFirst(!a.held, !b.held), `,
		replacement: ``,
		promise:     "within a source a listed record defines a service before a held one",
	},
	{
		file: "source/hold/explain.go", killer: "./source/supervise", run: "TestStoreHoldsTheLastGoodOfEach",
		text:        `is[i], own[rec.Owner] = e.explains(k, rec), true`,
		replacement: `is[i], own[rec.Owner] = false, true`,
		promise:     "an endpoint that a listing has under another name is no loss",
	},
	{
		file: "catalog/rank/rank.go", killer: "./catalog", run: "TestTheShorterPathCounts",
		text:        `return min(path.Len(), longestPath)*(lastPlace+1) + r.place(source)`,
		replacement: `return r.place(source)`,
		promise:     "records that came through fewer Isthmuses come first",
	},
	{
		file: "catalog/assemble.go", killer: "./catalog", run: "TestMergeFollowsTheRules|TestTranscripts",
		text:        ` || d.ResolutionAt(port.Number) != by.spec.Resolution {`,
		replacement: ` {`,
		promise:     "endpoints serve no port of another resolution",
	},
	{
		file: "catalog/addresses/addresses.go", killer: "./catalog", run: "TestOneOrderDecidesWhoOwnsWhat",
		text:        `if r.Ref.Source == first.Ref.Source {`,
		replacement: `if true {`,
		promise:     "an address that another source adds has the rights of that source",
	},
	{
		file: "catalog/endpoints.go", killer: "./catalog", run: "TestMergeFollowsTheRules|TestTranscripts",
		text:        `p.claims.Delete(c)`,
		replacement: `p.claims = immutable.New[claim, *Instance](claim.compare).Edit()`,
		promise:     "an endpoint is gone only when it is gone from every source",
	},

	// Package source/kubernetes.
	{
		file: "source/kubernetes/question.go", killer: "./source/kubernetes", run: "Silence|Quiet|Late",
		text:        `return len(list.Items) != r.objects, nil`,
		replacement: `return false, nil`,
		promise:     "an object that was deleted while the watch was silent is found missing",
	},

	// Package catalog/gate.
	{
		file: "catalog/gate/gate.go", killer: "./catalog", run: "SourcesArePrimed|WaitedFor|RequiredSources",
		text:        `!g.open && len(g.missing()) > 0`,
		replacement: `!g.open && len(g.missing()) > 1`,
		promise:     "the gate opens when every required source is primed",
	},
	{
		file: "catalog/gate/gate.go", killer: "./catalog", run: "WaitedFor|RequiredSources",
		text:        `g.update(func() { g.waited = true })`,
		replacement: `g.update(func() { g.waited = false })`,
		promise:     "the wait for optional sources is limited",
	},

	// Package output/envoy.
	{
		file: "output/envoy/changes.go", killer: "./output/envoy", run: "TestChanges",
		text:        `note(port.Number, some, assignmentsOfServices)`,
		replacement: `_ = some`,
		promise:     "Changes returns every name that a change concerns",
	},
	{
		file: "output/envoy/changes.go", killer: "./output/envoy", run: "TestWhatIsUrgent",
		text:        `urgent := t.locates && (lost[port] || leftSubset(of, c))`,
		replacement: `urgent := t.locates && lost[port] && leftSubset(of, c)`,
		promise:     "the removal of an endpoint is urgent",
	},

	// Package identity.
	{
		file: "identity/claims.go", killer: "./identity", run: "TestTimesOfAToken",
		text:        `if !now.Before(expires) {`,
		replacement: `if false {`,
		promise:     "an expired token proves nothing",
	},
	{
		file: "identity/keep.go", killer: "./identity", run: "TestStreamsEndAGrace",
		text:        `after = time.Until(p.Expires.Add(Grace))`,
		replacement: `after = never`,
		promise:     "a stream ends after its token expired",
	},
	{
		file: "identity/verifier.go", killer: "./identity", run: "TestProveEquals|TestEvidence|TestTokenProves",
		text:        `case proven.ID != "" && proven.ID != one.ID:`,
		replacement: `case false:`,
		promise:     "a certificate and a token have to agree",
	},
	{
		file: "identity/claims.go", killer: "./identity", run: "TestAddressesNarrow",
		text:        `within = within || block.Contains(at)`,
		replacement: `within = within || block.IsValid()`,
		promise:     "a claim of a token can only narrow",
	},
	{
		file: "identity/keep.go", killer: "./identity", run: "TestRevocationEnds",
		text:        `ended[k] = why`,
		replacement: `_ = why`,
		promise:     "a revocation ends the streams of its account",
	},
	{
		file: "identity/token.go", killer: "./identity",
		text:        `return nil, errors.New("token: it is not a signed JSON Web Token")`,
		replacement: `return nil, fmt.Errorf("token: %s is not a signed JSON Web Token", text)`,
		promise:     "the text of a token is in no error",
	},
	{
		file: "identity/rights.go", killer: "./identity",
		text:        `case !v.config.isForeign(p.TrustDomain):`,
		replacement: `case p.Namespace != "":`,
		promise:     "another trust domain has the rights that the configuration gives it",
	},
	{
		file: "app/app.go", killer: "./app", run: "TestRightsOfRegistries",
		text:        `identity: a.trust.verifier, self: a.self,`,
		replacement: `self: a.self,`,
		promise:     "a registry that dials has the rights of its proof",
	},
	{
		file: "internal/certs/holds.go", killer: "./internal/certs",
		text:        `return apart`,
		replacement: `_ = apart`,
		promise:     "an authority vouches for its trust domain alone",
	},
	{
		file: "authority/issuing.go", killer: "./authority", run: "Constrained",
		text:        `workloads.PermittedDNSDomains, workloads.ExcludedIPRanges = []string{noHost}, []*net.IPNet{all(32), all(128)}`,
		replacement: `_ = all`,
		promise:     "an issuing key of workloads names no server",
	},
	{
		file: "authority/leaf.go", killer: "./authority", run: "Issuer",
		text:        `return !early || by == i.now.Load().by`,
		replacement: `return !early || by != ""`,
		promise:     "a leaf that ends with its issuing certificate is replaced",
	},
	{
		file: "output/streams/register.go", killer: "./output/watch", run: "Unproven|Revoked|Health",
		text:        `guarded.Streams[i].Handler = s.admitting("/"+desc.ServiceName+"/"+m.StreamName, m.Handler)`,
		replacement: `guarded.Streams[i].Handler = m.Handler`,
		promise:     "every method identifies its client",
	},
}
