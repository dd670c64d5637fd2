package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/app"
	"github.com/isthmus-mesh/isthmus/cli/term"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/source/file"
)

// localTimeout is the default of --timeout without --connect: manifests are local.
const localTimeout = 20 * time.Second

// validation is the result of validate, as -o json and -o yaml print it.
type validation struct {
	File     string    `json:"file,omitempty"` // the configuration
	Problems []problem `json:"problems"`       // of the configuration
	rehearsal
}

// problem is a fault of a configuration.
type problem struct {
	Line   int    `json:"line,omitempty"`
	Field  string `json:"field,omitempty"`
	Reason string `json:"reason"`
}

func newValidate() *cobra.Command {
	var named configFile
	var connect bool
	var f term.Format
	var limit term.Timeout
	c := &cobra.Command{
		Use:   "validate PATH...",
		Short: "Check a configuration, or manifests, without acting on them",
		Long: `Validate reads a configuration and prints everything that is wrong with it: file,
line, field, reason and remedy. What is valid but unsafe it prints as a warning. It also
reads the manifests of its file sources, prints the objects that would be rejected, and
counts the kinds that have no effect here. It has no side effects and uses no network.

If all sources are files, or with --connect, the splits are compared with the services: a
host that no source lists, a backend that is left out with the reason, or a backend without
a healthy endpoint is a warning. So is a port of a service that needs an address: Envoys
have no listener for it, or lead connections to addresses of no service to it.

Files and folders of manifests are checked by themselves, without a configuration. A
folder is checked as a file source would read it, and '-' is the standard input.

With --connect it also reads all other sources and the API server of the output istio,
and prints what would be rejected of the sources, and what would be written and why. It
still changes nothing. With -o json or -o yaml everything is printed for a program, with
every line of every difference.

Exit status: 0 everything is valid, warnings included, nothing would be rejected, and no
right is missing; 1 something is wrong, and is printed; 2 wrong usage. Next, start it
with 'isthmus serve FILE'; one that runs applies a changed file by itself.`,
		Example: "  isthmus validate isthmus.yaml\n  isthmus validate registry/ more.yaml\n  kubectl get serviceentries -A -o yaml | isthmus validate -\n  isthmus validate --config isthmus.yaml --connect\n" +
			"  isthmus validate --config isthmus.yaml --connect -o json",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 && areManifests(args) {
				if connect || c.Flags().Changed("config") {
					return errors.New("manifests are checked by themselves: leave out --connect and --config, or name a configuration alone")
				}
				return validateManifests(c, args, f, limit)
			}
			if len(args) > 1 {
				return fmt.Errorf("only one configuration can be checked at a time, and %q is no folder and no file of manifests, which have an apiVersion and a kind", args[0])
			}
			path, err := named.path(c, args)
			if err != nil {
				return err
			}
			return validateConfig(c, path, connect, f, limit)
		},
	}
	named.add(c)
	c.Flags().BoolVar(&connect, "connect", false, "read all sources and the API server as well")
	rehearsalFlags(c, &f, &limit)
	return c
}

// validateConfig checks a configuration and the sources that may be read.
func validateConfig(c *cobra.Command, path string, connect bool, f term.Format, limit term.Timeout) error {
	v := validation{File: path, Problems: []problem{}, rehearsal: shape(app.Rehearsal{})}
	loaded, err := config.Check(path)
	if err != nil {
		if f == term.AsTable {
			return term.Wrong(err)
		}
		v.Problems = problemsOf(err)
		return errors.Join(term.Print(c, f, v, nil), term.Wrong(errors.New("the configuration is not valid")))
	}
	v.Warnings = slices.Concat(v.Warnings, loaded.Warnings(), config.Exposed(loaded))
	if f == term.AsTable {
		for _, warning := range v.Warnings {
			term.Say(c.ErrOrStderr(), "%s: warning: %s\n", path, warning)
		}
		term.Say(c.OutOrStdout(), "%s is valid: %s\n", path, summary(loaded))
	}
	whole, outputs := true, loaded.Outputs
	if !connect {
		local := localPart(loaded)
		whole, loaded = len(local.Sources) == len(loaded.Sources), local
		if !c.Flags().Changed("timeout") {
			limit = term.Timeout(localTimeout)
		}
	}
	return validateSources(c, v, loaded, outputs, whole, f, limit)
}

// problemsOf lists the faults that an error of [config.Check] has.
func problemsOf(err error) []problem {
	faults, ok := errors.AsType[*config.Error](err)
	if !ok {
		return []problem{{Reason: err.Error()}}
	}
	list := []problem{}
	for _, p := range faults.Problems {
		list = append(list, problem{p.Line, p.Field, p.Reason})
	}
	return list
}

// localPart returns the part of a configuration that needs no network: its file sources.
func localPart(loaded *config.Config) *config.Config {
	local := *loaded
	local.Outputs = nil
	local.Sources = slices.DeleteFunc(slices.Clone(loaded.Sources), func(s config.Source) bool {
		_, files := s.Settings.(*file.Config)
		return !files
	})
	return &local
}

// validateSources reads the sources of a configuration once, and prints the result. Whole means
// that no source of the configuration was left out, so the splits and outputs can be judged.
func validateSources(c *cobra.Command, v validation, loaded *config.Config, outputs []config.Output, whole bool, f term.Format, limit term.Timeout) error {
	if len(loaded.Sources) > 0 {
		log := slog.New(slog.DiscardHandler) // the result says all of it
		if len(loaded.Outputs) > 0 {
			log, _ = newLog(loaded.Log, c.ErrOrStderr())
		}
		read, err := rehearse(c, loaded, outputs, log, limit)
		if !whole {
			read.unmet = nil
		}
		read.Warnings = slices.Concat(v.Warnings, read.Warnings, read.unmet)
		v.rehearsal = read
		if err != nil {
			if f == term.AsTable {
				printSourcesOf(c, read)
			}
			return err
		}
	}
	err := term.Print(c, f, v, func() error {
		if len(loaded.Outputs) > 0 {
			printRehearsal(c, v.rehearsal)
		} else {
			printSourcesOf(c, v.rehearsal)
			printUnmet(c, v, loaded, whole)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := v.complaints(); err != nil {
		return term.Wrong(err)
	}
	return nil
}

// printUnmet prints the effects of the configuration that its services prevent.
func printUnmet(c *cobra.Command, v validation, loaded *config.Config, whole bool) {
	for _, warning := range v.unmet {
		term.Say(c.ErrOrStderr(), "%s: warning: %s\n", v.File, warning)
	}
	if !whole && len(loaded.Splits) > 0 {
		term.Say(c.OutOrStdout(), "splits are not compared with services, since not all sources are files; add --connect to read the others\n")
	}
}

func summary(c *config.Config) string {
	sources := make([]string, len(c.Sources))
	for i, source := range c.Sources {
		sources[i] = fmt.Sprintf("%s (%s)", source.Name, source.Kind)
	}
	parts := []string{fmt.Sprintf("instance %s, sources %s", c.Instance, strings.Join(sources, ", "))}
	for _, o := range c.Outputs {
		parts = append(parts, o.Kind+" "+o.Settings.String())
	}
	return strings.Join(parts, ", ")
}
