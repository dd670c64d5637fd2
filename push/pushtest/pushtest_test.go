package pushtest

import "testing"

func TestNeighbour(t *testing.T) { Run(t, neighbour("added")) }
