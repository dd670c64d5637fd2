// Package rig is a module without dependencies, for the test modules: each of them may use
// it, whichever versions of other modules it needs.
package rig
