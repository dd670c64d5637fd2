module github.com/isthmus-mesh/isthmus/test/envoy

go 1.26.0

require (
	github.com/google/go-cmp v0.7.0
	github.com/isthmus-mesh/isthmus v0.0.0
	go.uber.org/goleak v1.3.0
	golang.org/x/sys v0.48.0
)

replace github.com/isthmus-mesh/isthmus => ../..
