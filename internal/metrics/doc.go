// Package metrics turns plain snapshots of what the product does into the
// Prometheus exposition format, and keeps the two measures that need a memory
// of their own: Ages (percentiles over the last seconds, for the API, and a
// histogram since start, for Prometheus) and Histogram.
//
// Stages export snapshots of plain values and do not import this package; the
// pipeline fills a Snapshot from them. Every scrape asks for a new one, so a
// camera that was removed is gone from the next scrape, and label values are
// bounded: a camera has at most maxReasons reasons, further ones count as
// "other".
package metrics
