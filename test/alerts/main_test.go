// Package alerts_test holds the alerts and the dashboard of the chart against scrapes of a
// running Isthmus: an alert fires in its fault, and none fires in health.
//
// It uses the libraries of promtool: promlint, which promtool check metrics runs, rulefmt,
// which promtool check rules runs, and the engine of PromQL. The command promtool itself
// imports every service discovery of Prometheus, and takes minutes to build.
package alerts_test
