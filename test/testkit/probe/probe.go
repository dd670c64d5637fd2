// Package probe looks at a program under measurement from outside: at the pages
// that it serves, its metrics among them, and at what Linux counts of it.
package probe

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Get returns a page, nil if there is none.
func Get(url string) []byte {
	answer, err := http.Get(url)
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return nil
	}
	return page
}

// Metrics are the values of a scrape by series.
type Metrics map[string]float64

// ParseMetrics reads a page of metrics. There are none on no page.
func ParseMetrics(tb testing.TB, page []byte) Metrics {
	tb.Helper()
	m := Metrics{}
	for line := range bytes.Lines(page) {
		text := strings.TrimSpace(string(line))
		cut := strings.LastIndexByte(text, ' ')
		if cut < 0 || text[0] == '#' {
			continue
		}
		value, err := strconv.ParseFloat(text[cut+1:], 64)
		if err != nil {
			tb.Fatalf("metrics: %q: %v", text, err)
		}
		m[text[:cut]] = value
	}
	return m
}

// Sum adds up all series of a metric.
func (m Metrics) Sum(name string) (sum float64) {
	for series, value := range m {
		if metric, _, _ := strings.Cut(series, "{"); metric == name {
			sum += value
		}
	}
	return sum
}

// CPU is the processor time that a process has used. It is what utime and stime
// of /proc/PID/stat add up to, without their steps of 10 ms: the sum over its
// threads, none of which ends in a Go program.
func CPU(tb testing.TB, pid int) time.Duration {
	tb.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(files) == 0 {
		tb.Fatal("no /proc/PID/task/*/schedstat: these benchmarks need Linux")
	}
	var sum time.Duration
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		first, _, _ := strings.Cut(string(text), " ")
		ns, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			tb.Fatal(err)
		}
		sum += time.Duration(ns)
	}
	return sum
}

// Memory is a field of /proc/PID/status in bytes, such as VmRSS, what a process
// has in memory, and VmHWM, the most that it ever had.
func Memory(tb testing.TB, pid int, field string) float64 {
	tb.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		tb.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), field+":")
	line, _, _ := strings.Cut(rest, "kB")
	kib, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
	if err != nil {
		tb.Fatalf("%s in /proc/PID/status: %v", field, err)
	}
	return kib * 1024
}
