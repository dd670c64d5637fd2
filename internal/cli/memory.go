package cli

import (
	"log/slog"
	"math"
	"os"
	"strconv"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// share of the memory that the process may have is for the Go runtime; the rest
// is for what it does not count, such as threads' stacks.
const share = 0.9

// memoryVariable has the bytes of memory that the process may use, for where its
// cgroup cannot be seen. It is no GOMEMLIMIT, which would leave no room for what
// the runtime does not count.
const memoryVariable = "ISTHMUS_MEMORY_LIMIT"

// limitMemory has the runtime keep within what the process may have, by its
// cgroup, its resource limit or its environment, unless GOMEMLIMIT says otherwise:
// it collects garbage sooner rather than be killed, and what clients may make the
// program hold is a part of it.
func limitMemory(log *slog.Logger) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if given := os.Getenv(memoryVariable); given != "" {
		if _, err := strconv.ParseUint(given, 10, 64); err != nil {
			log.Warn("the variable is no number of bytes, and is not taken; give such as 1073741824", "variable", memoryVariable, "value", given)
		}
	}
	limit, err := memlimit.SetGoMemLimitWithOpts(memlimit.WithRatio(share), memlimit.WithProvider(allowed))
	if err != nil || limit <= 0 || limit == math.MaxInt64 {
		return // there is no limit to keep
	}
	log.Info("memory is limited", "bytes", limit)
}

// allowed is the least of the limits that there are.
func allowed() (uint64, error) {
	least, err := memlimit.FromCgroup()
	if err != nil {
		least = math.MaxUint64
	}
	if limit, ok := resourceLimit(); ok {
		least = min(least, limit/4*3) // it counts what is reserved, too, such as stacks of threads
	}
	if limit, err := strconv.ParseUint(os.Getenv(memoryVariable), 10, 64); err == nil && limit > 0 {
		least = min(least, limit)
	}
	if least == math.MaxUint64 {
		return 0, memlimit.ErrNoLimit
	}
	return least, nil
}
