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
// A camera has the goroutines of its capture.Supervisor. A station, one model on
// one device, has workers, one for each concurrent run that the engine profits
// from; they take frames by deadline, as package schedule says. Where there are
// several a camera has one frame in flight at most, and where there is one its
// batches end in order: a camera's tracker and its results are in order without a
// lock. A feed has a goroutine while somebody watches. Locks are taken in the order
// Pipeline.reload, Pipeline.mu, then those of a camera, a feed or a scheduler.
//
// # Failure
//
// A camera that fails is its supervisor's concern and nobody else's. A model
// that gives impossible values is unhealthy: its answers are dropped and
// counted, the pictures go on, and Ready says why. A card that is lost gives its
// cameras to the others; the last one keeps them, and Ready says why.
package pipeline
