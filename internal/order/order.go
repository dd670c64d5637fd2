// Package order has comparisons that package cmp lacks.
package order

// TrueFirst is negative if a alone is true, positive if b alone is, and otherwise zero.
func TrueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}
