package servicecenter

// watcher is the watch of a consumer.
type watcher struct{}

// publish tells the watchers of a change that they are to hear of.
func (s *Server) publish(change, *Service) {}
