//go:build !race

package watch_test

const raced = false
