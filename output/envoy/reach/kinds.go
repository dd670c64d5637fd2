package reach

// The kinds of clients a view may be of. Clients of any other kind see nothing.
const (
	KindEnvoy = "envoy"
	KindGRPC  = "grpc"
	// KindGRPCNode is gRPC that has to be answered otherwise about listeners that do
	// not exist: see [absentListener]. It sees the same resources as KindGRPC.
	KindGRPCNode = "grpc-node"
)

// IsEnvoy reports whether a kind of client is an Envoy.
func IsEnvoy(kind string) bool { return kind == KindEnvoy }

// IsGRPC reports whether a kind of client is gRPC.
func IsGRPC(kind string) bool { return kind == KindGRPC || kind == KindGRPCNode }
