// Package cameras measures how many cameras a box takes: simulated cameras in a
// process of their own, real RTSP, and the pipeline as `edgecam run` builds it.
//
// A trial has so many cameras and takes a moment of warm-up, until every camera is
// live, and the time that is measured. The search for the largest number doubles
// it until a trial fails and then bisects; between trials cameras are added or
// taken out by a reload, so that the engine is loaded once. The clock of every
// age is the pipeline's own.
package cameras
