module github.com/isthmus-mesh/isthmus/test/mcp

go 1.26.0

require (
	go.uber.org/goleak v1.3.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
	istio.io/api v1.22.3
)

require (
	github.com/golang/protobuf v1.5.4 // indirect
	github.com/isthmus-mesh/isthmus/test/rig v0.0.0
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20260817212433-ac3dfec99bb1 // indirect
)

replace github.com/isthmus-mesh/isthmus/test/rig => ../rig
