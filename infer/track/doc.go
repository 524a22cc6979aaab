// Package track gives objects ids that last from picture to picture.
//
// # Position
//
// internal/pipeline has one Tracker a camera: detections in fractions of the
// picture go in, the same detections with ids come out, to events and overlay.
//
// # What an id means
//
// Every strong detection is shown at once. It gets its id, counted from 1, when
// it is seen a second time; until then the id is 0. So a detector's one-picture
// mistakes neither burn ids nor flash numbers on the screen. An id stays with
// its object through gaps of up to a second and is never used again. Only what
// the detector saw comes out: where an object is hidden, nothing is drawn on a
// guess.
//
// # How
//
// Each track predicts its box with a constant-velocity Kalman filter. Pairs of
// track and detection of one class are taken greedily by falling overlap, not as
// the assignment with the largest sum: that sum gives up a nearly certain pair
// where two doubtful ones add up to more, and costs the cube of the objects.
// Detections that are not strong can only go on with a track, not begin one.
//
// Motion is all that is compared, no colours: people who meet, mix and part
// behind something may exchange ids.
//
// # Ownership
//
// A Tracker keeps no reference to what it is given.
//
// # Concurrency
//
// A Tracker belongs to one goroutine. Nothing runs in the background.
//
// # Failure
//
// There is none: boxes that are no boxes (NaN, no area) come out with id 0 and
// touch no track, and a clock that stands still or runs backwards counts as no
// time passed.
package track
