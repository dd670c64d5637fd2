// Package memory limits the memory of the process by the limits of its environment.
package memory

import (
	"log/slog"
	"math"
	"os"
	"strconv"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// share is the Go runtime's part of the process's memory. The rest is for memory that the
// runtime does not count, such as threads' stacks.
const share = 0.9

// memoryVariable has the bytes of memory that the process may use, for systems where its
// cgroup is not visible. GOMEMLIMIT is different: it would leave no room for memory that
// the runtime does not count.
const memoryVariable = "ISTHMUS_MEMORY_LIMIT"

// Limit sets the runtime's memory limit from the process's cgroup, its resource limit
// or its environment, unless GOMEMLIMIT is set. The runtime then collects garbage sooner
// instead of being killed. The budgets of clients are a part of the limit.
func Limit(log *slog.Logger) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if given := os.Getenv(memoryVariable); given != "" {
		if _, err := strconv.ParseUint(given, 10, 64); err != nil {
			log.Warn("the variable is ignored: it is not a number of bytes, such as 1073741824", "variable", memoryVariable, "value", given)
		}
	}
	limit, err := memlimit.SetGoMemLimitWithOpts(memlimit.WithRatio(share), memlimit.WithProvider(allowed))
	if err != nil || limit <= 0 || limit == math.MaxInt64 {
		return // there is no limit to keep
	}
	log.Info("memory is limited", "bytes", limit)
}

// allowed returns the least of the known limits.
func allowed() (uint64, error) {
	least, err := memlimit.FromCgroup()
	if err != nil {
		least = math.MaxUint64
	}
	if limit, ok := resourceLimit(); ok {
		least = min(least, limit/4*3) // the limit also counts reserved memory, such as stacks of threads
	}
	if limit, err := strconv.ParseUint(os.Getenv(memoryVariable), 10, 64); err == nil && limit > 0 {
		least = min(least, limit)
	}
	if least == math.MaxUint64 {
		return 0, memlimit.ErrNoLimit
	}
	return least, nil
}
