// Package pipeline wires the stages: it alone knows them all.
//
// # Position
//
// One camera is one value: newCamera lists its stages in the order in which a
// frame walks through them. cmd/edgecam builds a Pipeline from a config and the
// loaded engine and runs it; web asks it through web.Backend.
//
// # Ownership
//
// emit consumes the frames of a camera's decoder. A frame then has one holder
// at a time: the lane's mailbox, then a worker; viewers hold handles of their
// own. The worker that took a frame releases it, whatever happens to it.
//
// # Concurrency
//
// A camera has the goroutines of its capture.Supervisor. Workers, one for each
// concurrent run that the engine profits from, take the newest frame of the
// camera that has waited longest. A camera has one frame in flight at most, so
// its tracker and its results are in order without a lock. A feed has a
// goroutine while somebody watches.
//
// # Failure
//
// A camera that fails is its supervisor's concern and nobody else's. A model
// that gives impossible values is unhealthy: its answers are dropped and
// counted, the pictures go on, and Ready says why.
package pipeline
