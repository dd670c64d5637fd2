// Package servicecenter is a stand-in for the ServiceComb Service Center: an
// HTTP server in this process that answers as the original was recorded to
// answer.
package servicecenter
