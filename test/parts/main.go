// Command parts runs the parts of all tests that are more than make test: the stories of the
// gate, and the parts that are too long for it.
//
//	go run ./test/parts stories    # the end-to-end stories of the gate
//	go run ./test/parts list       # each long part, with its last result and whether it still counts
//	go run ./test/parts touched    # run the long parts without a result that counts, and note their results
//	go run ./test/parts stale      # the same without a note and with fixed seeds, for the gate
//	go run ./test/parts all        # run every long part, and the modules that are stories as a whole
//	go run ./test/parts racing     # print the packages that the race detector has work in
//
// No machine runs nights for this project, so a long part must not rot: a result counts as long
// as the inputs of its part are the same files. The inputs are the files of the packages that a
// part tests, of all packages that those import, and of the part's own module. Results are lines
// of test/parts/results.txt, which is committed: part, hash of the inputs, commit, result, date.
//
// Two stories or parts run at a time. Each one's output is printed as a whole once it has ended.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := errors.New("say one of stories, list, touched, stale, all, racing; add a regular expression to select parts")
	if len(os.Args) > 1 {
		err = run(ctx, os.Args[1], strings.Join(os.Args[2:], "|"))
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "parts:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, verb, pattern string) error {
	switch verb {
	case "racing":
		return racing(ctx)
	case "stories":
		return runAll(ctx, stories(pattern), nil)
	}
	tracked, err := load(ctx, pattern)
	if err != nil {
		return err
	}
	switch verb {
	case "list":
		for _, t := range tracked {
			fmt.Println(t)
		}
		return nil
	case "touched":
		return runAll(ctx, stale(tracked, false), note)
	case "stale":
		return runAll(ctx, stale(tracked, true), nil)
	case "all":
		return runAll(ctx, append(jobs(tracked, false), whole(pattern)...), nil)
	default:
		return fmt.Errorf("unknown command %q", verb)
	}
}

// job is a story or a long part.
type job struct {
	name     string
	commands [][]string
	inputs   string // the hash of a long part's inputs
}

// atOnce is how many jobs run at a time: most of them wait more than they work.
const atOnce = 2

// runAll builds the program once, runs every job, and returns the failed ones.
func runAll(ctx context.Context, all []job, done func(context.Context, job, error) error) error {
	if len(all) == 0 {
		fmt.Println("parts: every long part has a result that counts")
		return nil
	}
	program, err := filepath.Abs("bin/tested")
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", program, "./cmd/isthmus")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building isthmus: %w: %s", err, out)
	}
	var (
		mu     sync.Mutex // of standard output and of the results
		group  sync.WaitGroup
		failed []string
		places = make(chan struct{}, atOnce)
	)
	for _, j := range all {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			began := time.Now()
			out, err := j.run(ctx, program)
			mu.Lock()
			defer mu.Unlock()
			fmt.Printf("=== %s\n%s", j.name, out)
			if done != nil {
				err = errors.Join(err, done(ctx, j, err))
			}
			if err != nil {
				failed = append(failed, j.name)
			}
			fmt.Printf("=== %s: %v after %.0f s\n", j.name, cmp.Or(err, errOK), time.Since(began).Seconds())
		})
	}
	group.Wait()
	if len(failed) > 0 {
		return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
	}
	return nil
}

var errOK = errors.New("ok")

// run runs the commands of a job, every one of them even after a failure.
func (j job) run(ctx context.Context, program string) (out []byte, err error) {
	for _, words := range j.commands {
		command := exec.CommandContext(ctx, words[0], words[1:]...)
		command.Env = append(os.Environ(), "ISTHMUS_PROGRAM="+program)
		said, failed := command.CombinedOutput()
		out = append(out, said...)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", strings.Join(words, " "), failed))
		}
	}
	return out, err
}
