// Package servicecenter is a stand-in for the ServiceComb Service Center: an
// HTTP server in this process that gives the recorded answers of a running
// original (testdata, which the tests replay against it).
//
//	s := servicecenter.Start(t, servicecenter.Config{})
//	cart := s.Register(servicecenter.Service{App: "shop", Name: "cart"})
//	s.RegisterInstance(cart, servicecenter.Instance{HostName: "h", Endpoints: []string{"rest://10.0.0.1:80"}})
//	// a client of s.URL() finds it 0.3 s later, as it would with the original
//	s.Inject(servicecenter.ListServices, servicecenter.FailWith(servicecenter.Internal), 3)
//	// the next three listings fail; s.Requests counts them
//
// The original's pitfalls for clients are included, because clients have to be tested with
// them. A replica's view lags behind the registered data: by 0.3 s, by 2 s more for
// deletions, and by minutes when most instances disappear at once. The view is updated
// when there was no change for 0.3 s, or when 800 have gathered. Under steady change it
// therefore lags by tens of seconds. The backend is read in three cases: for a client with
// another revision, for one that wants no cache, which sees deletions at once, and for a
// service without a seen instance. A revision identifies a set of instances, not a time.
// Lists have no order. A watcher is notified only of services that its consumer has looked
// up, and not until that was recorded. Events have no revision, overflow silently, and are
// not sent at all for a service that was deleted by force. A service that is registered
// again has its old id. [Config] removes the delays for tests of other behaviour, and
// [Server.Replica] adds replicas.
//
// Time passes only through package time, and all goroutines end with
// [Server.Close]: with [Memory] as its listener, a stand-in can live in a bubble
// of testing/synctest. Its methods may be called from any goroutine.
//
// Not faithful:
//
//	schemas, tags, access rules,   not there: 404. Nor are the version,
//	quotas, alarms, the syncer,    consumers and providers, properties of services,
//	dumps, statistics              accounts and roles, deletions of several services,
//	                               and heartbeats of several instances
//	govern/microservices           always with the dependencies, and nothing else
//	authorization                  a good token may do anything; it is no JWT
//	                               but random; no roles, no labels
//	services shared by all tenants only SERVICECENTER, which is in default/default
//	batch with an internal error   fails as a whole in the original ([Server.Inject]);
//	                               [Server.FailKeys] is for clients that must bear
//	                               it among the failed keys as well
//	checks of registrations        the common fields; the wording of the rule is
//	                               the original's where it was recorded
//	dependency rules               known after a fixed time ([Config].RuleDelay); the
//	                               original has a queue that it takes a lock for
//	leases                         end on time; the original's end up to 2 s later
//	self-preservation              ends when it is due, not also when the backend
//	                               turns out to hold the shown instances
//	services                       are shown at once, as are their deletions
//	pongs                          a ping with a payload is not answered; the
//	                               original answers with an empty pong, which is not
//	                               the ping's either
//	the nightly retirement         does not happen by itself: call Unregister
//	EXPIRE                         is sent by [Server.Emit] only; the original has it,
//	                               but never gets to send it
package servicecenter
