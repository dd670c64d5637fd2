package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// chosen are the stories of the gate, by test module: one for each promise of README and each kind
// of fault, on the real parts. A new story replaces one.
var chosen = []struct {
	module string
	flags  []string // the seed of all draws
	tests  []string // nil is every test
}{
	{"envoy", []string{"-seed=1"}, []string{
		"SidecarTakesAnyServices", "EdgeTakesAnyServices", "EveryShapeIsActive", "EveryCombinationAnswers",
		"EveryChangeOfFormBecomesActive", "ClustersAreFoundOnDemand", "HostsOfALargePortComeOneByOne",
		"OutageFailsNoRequest", "ReplicasTakeOverFromEachOther", "SidecarsUseMutualTLS", "RotationFailsNoRequest",
		"SharesFailNoCallWhateverHappens",
	}},
	{"istio", []string{"-rapid.seed=1"}, []string{
		"IstiodTakesServicesFromIsthmus", "RegistryChangesReachCalls", "RegistryFaultsTakeNothingAway",
		"APIServerIsKilledInMidPush", "LeaderIsKilledInMidPush", "PausedLeaderUndoesNothing",
		"NearlyEmptyRegistryAfterRestartTakesNothingAway", "RestartWithOldDiskTakesNothingAway", "DriftIsRestored",
		"ForeignObjectsAreLeftAlone", "TwoBridgesDoNotFight", "MovesBetweenTheFormsLoseNoEndpoint",
	}},
	{"kubernetes", []string{"-rapid.seed=1"}, []string{
		"AnyHistoryEndsEqualToAList", "ServiceIsFollowed", "APIServerIsKilled", "RightsAreLost",
		"NamespaceThatCannotBeReadKeepsItsOwnAlone", "ServicesAreNotWrittenBack",
		"TwoThatReadEachOthersClustersEndWithoutAnEcho", "OneServiceOfFourRegistries", "TokenExpires",
		"ListThatExpiresBetweenPages",
	}},
	{"grpc", nil, []string{"CallsFollowTheEndpoints", "CallsGoOnWhileIsthmusIsKilled", "SplitsDecideTheShares", "TokenProvesAClient"}},
	{"mcp", nil, []string{"IsthmusDialsASource", "IncrementsAreResumed"}},
	{"verdicts", []string{"-rapid.seed=1"}, nil},
	{"simulation", []string{"-rapid.seed=1"}, nil},
	{"rig", nil, nil},
}

// stories are the jobs of the stories of modules that match a pattern.
func stories(pattern string) (all []job) {
	for _, s := range chosen {
		if matched, _ := regexp.MatchString(pattern, s.module); !matched {
			continue
		}
		run := "."
		if s.tests != nil {
			run = "^Test(" + strings.Join(s.tests, "|") + ")$"
		}
		all = append(all, job{name: s.module, commands: inModule(s.module, ".", append([]string{"-run", run}, s.flags...)...)})
	}
	return all
}

// seeds are the flags of a module for the draws of the gate.
func seeds(module string) []string {
	for _, s := range chosen {
		if s.module == module {
			return s.flags
		}
	}
	return nil
}

// whole are the stories of the modules that are run as a whole.
func whole(pattern string) []job {
	return slices.DeleteFunc(stories(pattern), func(j job) bool {
		return slices.ContainsFunc(parts, func(p part) bool { return p.module == j.name })
	})
}

// A part is a long part: it is run when its inputs changed.
type part struct {
	name     string
	module   string   // the test module that it runs whole; empty if it runs none
	inner    string   // the package of the module with tests beside its first, which draw nothing
	packages []string // the packages of the product that it tests
	files    []string // folders whose files it reads beside
	command  []string // of a part without a module
}

// parts are the long parts. The application, its configuration and its commands are in every one
// of them, and in all stories: they are no inputs of a part.
var parts = []part{
	{name: "envoy", module: "envoy", packages: []string{"./output/envoy/...", "./output/xds/...", "./secrets/...", "./authority"}},
	{name: "istio", module: "istio", inner: "./scale", packages: []string{"./output/istio/...", "./output/mcp", "./output/resource"}},
	{name: "kubernetes", module: "kubernetes", packages: []string{"./source/kubernetes/...", "./source/azure"}},
	{name: "grpc", module: "grpc", packages: []string{"./output/envoy/...", "./output/xds/...", "./output/watch", "./client"}},
	{name: "mcp", module: "mcp", inner: "./sinks", packages: []string{"./source/mcp/...", "./output/mcp"}},
	{name: "nacos", module: "nacos", packages: []string{"./source/mcp/...", "./source/xds/..."}},
	{name: "alerts", module: "alerts", packages: []string{"./admin"}, files: []string{"deploy", "docs/operations", "docs/reference"}},
	{name: "deploy", module: "deploy", packages: []string{"./config"}, files: []string{"deploy"}},
	{name: "mutate", packages: []string{
		"./push", "./source/supervise", "./store", "./catalog/gate", "./output/envoy", "./identity", "./test/mutate",
	}, command: []string{"make", "mutate"}},
	{name: "laws", packages: []string{"./test/laws", "./output/istio/..."}, command: []string{"make", "laws", "TESTFLAGS=-count=1"}},
}

// inModule are the commands that test a module: its servers first, outside of the time of tests.
func inModule(module, packages string, flags ...string) [][]string {
	folder := filepath.Join("test", module)
	var commands [][]string
	if _, err := os.Stat(filepath.Join(folder, "build")); err == nil {
		commands = append(commands, []string{"go", "-C", folder, "run", "./build"})
	}
	test := []string{"go", "-C", folder, "test", "-count=1", "-vet=off", "-timeout=30m", packages}
	return append(commands, append(test, flags...))
}
