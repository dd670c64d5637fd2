package kubernetes_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/util/runtime"
)

// TestMain takes away what client-go does with errors: log them, and wait until it is a
// while since the last one of the whole process, which may be one of another bubble, with
// another time.
func TestMain(m *testing.M) {
	if file := os.Getenv(untilFile); file != "" {
		beCredentialPlugin(file)
		return
	}
	runtime.ErrorHandlers = nil
	goleak.VerifyTestMain(m)
}
