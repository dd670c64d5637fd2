package clients

// Java and Node are the names of implementations that differ from the others.
const (
	Java = "grpc-java"
	Node = "grpc-node"
)

// language is how a client is made and run. In its commands, $MODULE is the
// folder of this module and $DIR that of the client in the cache.
type language struct {
	name  string   // of the implementation of gRPC
	dir   string   // its folder beside this file; that in the cache begins with it
	pins  []string // files of the module that it is made from too
	tools []tool
	steps [][]string // commands that set it up, run in $DIR
	run   []string   // the command that is the client
}

// tool is a program that must be installed.
type tool struct {
	name    string
	version []string // arguments with which it says its version
	debian  string   // the packages to install
}

// languages are all of them. What they fetch is pinned in the files beside the
// programs; for Go that is the module of these tests.
var languages = []language{
	{
		name: "grpc-go", dir: "go",
		pins:  []string{"go.mod", "go.sum"},
		tools: []tool{{"go", []string{"env", "GOVERSION", "GOOS", "GOARCH"}, "golang-go"}},
		steps: [][]string{{"go", "-C", "$MODULE", "build", "-buildvcs=false", "-o", "$DIR/client", "./clients/go"}},
		run:   []string{"$DIR/client"},
	},
	{
		name: "C-core", dir: "python",
		tools: []tool{{"python3", []string{"--version"}, "python3 python3-venv"}},
		steps: [][]string{
			{"python3", "-m", "venv", "venv"},
			// Wheels only: to compile C-core takes the better part of an hour.
			{
				"venv/bin/python", "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:",
				"--disable-pip-version-check", "--requirement", "requirements.txt",
			},
		},
		run: []string{"$DIR/venv/bin/python", "$DIR/client.py"},
	},
	{
		name: Node, dir: "node",
		tools: []tool{{"node", []string{"--version"}, "nodejs"}, {"npm", []string{"--version"}, "npm"}},
		steps: [][]string{{"npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"}},
		run:   []string{"node", "$DIR/client.js"},
	},
	{
		name: Java, dir: "java",
		tools: []tool{
			{"javac", []string{"-version"}, "default-jdk-headless"},
			{"mvn", []string{"--version"}, "maven"},
		},
		steps: [][]string{{"mvn", "--batch-mode", "--quiet", "compile"}},
		// Small, for there are several at a time: little heap, one compiler.
		run: []string{"java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", "$DIR/target/classes:$DIR/target/lib/*", "Client"},
	},
}
