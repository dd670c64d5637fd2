package get

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	resourcev1alpha1 "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/cli/term"
	"github.com/isthmus-mesh/isthmus/model"
)

const completeTimeout = 2 * time.Second // a person waits for it at the keyboard

// complete completes kinds without a server, and names, namespaces and sources from one.
func complete(c *cobra.Command, o *options) {
	c.ValidArgsFunction = func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return term.Completions(append(understood(), carried()...), strings.ToLower(begun)), cobra.ShellCompDirectiveNoFileComp
		case 1:
			o.take(args)
			filter := o.filter()
			filter.NamePrefix = begun
			return term.Completions(refs(c.Context(), o, filter, (*resourcev1alpha1.Ref).GetName), begun), cobra.ShellCompDirectiveNoFileComp
		default:
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	}
	flag := func(name string, kind model.Kind, part func(*resourcev1alpha1.Ref) string) {
		if err := c.RegisterFlagCompletionFunc(name, func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
			return term.Completions(refs(c.Context(), o, &resourcev1alpha1.Filter{Kind: string(kind)}, part), begun), cobra.ShellCompDirectiveNoFileComp
		}); err != nil {
			panic(err) // the flag exists
		}
	}
	flag("namespace", model.KindMergedService, (*resourcev1alpha1.Ref).GetNamespace)
	flag("source", model.KindSource, (*resourcev1alpha1.Ref).GetSource)
}

// refs returns a part of the names of the first records that a filter selects. If there is no
// answer, it returns nothing.
func refs(ctx context.Context, o *options, filter *resourcev1alpha1.Filter, part func(*resourcev1alpha1.Ref) string) (list []string) {
	conn, err := o.server.dial()
	if err != nil {
		return nil
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	response, err := resourcev1alpha1.NewResourceServiceClient(conn).List(ctx, &resourcev1alpha1.ListRequest{Filter: filter})
	if err != nil {
		return nil
	}
	for _, r := range response.GetRecords() {
		list = append(list, part(r.GetRef()))
	}
	return list
}
