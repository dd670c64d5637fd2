package cli_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite what the scripts expect by cmp")

// Each file of testdata is a session at the command line. Beside testscript's
// own commands there are
//   - exits STATUS COMMAND...: the command ends with that exit status;
//   - serve FILE: isthmus serve runs from here on, with the script's limits of
//     memory, $ADMIN is its admin API, $ADDRESS that without http://, and $XDS and $WATCH the
//     addresses of the outputs xds and watch;
//   - run FILE: the same, without waiting until it is ready and every source live;
//   - await PATH TEXT: the admin API comes to say that there;
//   - connect ID [FIELD=TEXT...]: a client with that node id and metadata has accepted all
//     clusters;
//   - nack ID REASON: a client with that node id has NACKed all clusters for
//     that reason, and accepts those that follow; both are written as in a Go string;
//   - resave TIMES FILE LINE: the file is saved so many times, each time a line
//     longer at its beginning, and read: what is rejected moves down from the line.
//     Half of it is read each time before the whole is;
//   - mute ID: a client with that node id was sent all clusters, and does not answer;
//   - answer: it accepts them at last;
//   - hangup: SIGHUP to the server;
//   - terminate: SIGTERM to the server, which ends with status 0; what it
//     logged is in the file serve.log;
//   - kubernetes KUBECONFIG MANIFESTS: an API server runs from here on that has
//     what the manifests say, and the kubeconfig leads to it;
//   - untouched: nothing was written to that API server;
//   - forbid VERB: that API server says that the verb is not allowed;
//   - full COMMAND...: the command fails, and says so, as there is no room for
//     what it prints;
//   - unread COMMAND...: the command ends without a word, as nobody reads what it
//     prints;
//   - beside FILE: another isthmus serve runs from here on, and $BESIDE is its admin API;
//   - depart: that one ends, as by terminate;
//   - next STATUS: the command at the end of the first "next:" line of the last output ends
//     with that exit status;
//   - disk SIZE FOLDER: servers have a file system of that size in the folder from here on,
//     and [namespaces] is whether they can;
//   - fill FOLDER, empty FOLDER: a file takes all that is left of it, and is removed again;
//   - silence: a server listens from here on that never answers, at $SILENCE;
//   - registry: a Service Center listens from here on, at $REGISTRY;
//   - interrupt SIGNAL STATUS COMMAND...: the command, which comes to wait for that
//     server, gets the signal and ends with that exit status; what it says is in
//     the file said.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			env.Values[theServer{}], env.Values[theAPI{}], env.Values[theSilence{}] = &server{}, &cluster{}, &silent{}
			env.Values[theOther{}], env.Values[theMuted{}] = &server{}, new(func() error)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "serve": serve, "connect": connect, "nack": nack, "terminate": terminate,
			"await": await, "hangup": hangup, "kubernetes": kubernetes, "untouched": untouched, "forbid": forbid, "run": run, "resave": resave,
			"full": full, "unread": unread, "silence": silence, "interrupt": interrupt, "registry": registry,
			"beside": beside, "depart": depart, "next": next, "disk": disk, "fill": fill, "empty": empty, "mute": mute, "answer": answer,
		},
		Condition: condition,
	})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND...")
	}
	status := 0
	err := ts.Exec(args[1], args[2:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		status = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(status) != args[0] {
		ts.Fatalf("exit status %d, not %s", status, args[0])
	}
}

// serve, await, connect, hangup and terminate act on the one server that a script may have.

func serve(ts *testscript.TestScript, neg bool, args []string) {
	run(ts, neg, args)
	ts.Check(serverOf(ts).await("/readyz", "ok"))
	ts.Check(serverOf(ts).awaitLive())
}

func run(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: serve or run FILE")
	}
	s := serverOf(ts)
	var variables []string
	for _, name := range []string{"GOMEMLIMIT", "ISTHMUS_MEMORY_LIMIT", "REGISTRY", "SILENCE", "WORK"} {
		if value := ts.Getenv(name); value != "" {
			variables = append(variables, name+"="+value)
		}
	}
	ts.Check(s.start(ts.MkAbs(args[0]), variables...))
	ts.Defer(s.kill)
	ts.Setenv("ADMIN", s.admin)
	ts.Setenv("ADDRESS", strings.TrimPrefix(s.admin, "http://"))
	ts.Setenv("XDS", s.xds)
	ts.Setenv("WATCH", s.watch)
}

func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await PATH TEXT")
	}
	ts.Check(serverOf(ts).await(args[0], args[1]))
}

func resave(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: resave TIMES FILE LINE")
	}
	times, err := strconv.Atoi(args[0])
	ts.Check(err)
	line, err := strconv.Atoi(args[2])
	ts.Check(err)
	text := ts.ReadFile(args[1])
	for i := range times {
		text = "# saved again\n" + text
		ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte("half: ["), 0o600))
		ts.Check(serverOf(ts).await("/api/v1/sources", filepath.Base(args[1])+`:1"`))
		ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
		ts.Check(serverOf(ts).await("/api/v1/sources", fmt.Sprintf("%s:%d", filepath.Base(args[1]), line+i+1)))
	}
}

func connect(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: connect ID [FIELD=TEXT...]")
	}
	s := serverOf(ts)
	hangUp, err := answerClusters(s.xds, args[0], "", args[1:]...)
	ts.Check(err)
	ts.Defer(hangUp)
	ts.Check(s.await("/api/v1/clients", `"state": "accepted"`))
}

func nack(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: nack ID REASON")
	}
	s := serverOf(ts)
	for i := range args {
		text, err := strconv.Unquote(`"` + args[i] + `"`)
		ts.Check(err)
		args[i] = text
	}
	hangUp, err := answerClusters(s.xds, args[0], args[1])
	ts.Check(err)
	ts.Defer(hangUp)
	ts.Check(s.await("/api/v1/clients", `"state": "refused"`))
}

func hangup(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: hangup")
	}
	ts.Check(serverOf(ts).process.Process.Signal(syscall.SIGHUP))
}

func terminate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: terminate")
	}
	ts.Check(serverOf(ts).terminate(ts.MkAbs("serve.log")))
}

// theServer is the key under which a script keeps it.
type theServer struct{}

func serverOf(ts *testscript.TestScript) *server { return ts.Value(theServer{}).(*server) }
