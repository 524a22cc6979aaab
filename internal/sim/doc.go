// Package sim plays clips as RTSP cameras: for `edgecam demo`, `edgecam sim`
// and the tests of everything that talks to a camera.
//
// A Server is a gortsplib server with a stream for each camera, at /cam1,
// /cam2 and so on. A camera loops its clip in real time, starts at its own
// place in it, and keeps RTP timestamps and sequence numbers continuous over
// the loop's end, as a real one would. It plays only while somebody watches.
// Hundreds of cameras in good health are cheap: the clip is cut into packets once
// for all of them, one timer paces them, and a picture leaves with one call.
// Faults (see ParseFaults) make the cameras misbehave in the ways that cameras
// in the field do.
//
// Healthy cameras are streams of one gortsplib server. A camera with faults has
// a server written for it (oddCamera): it breaks the rules that a library keeps,
// and every session plays for itself. One port serves both, told apart by the
// path of a connection's first request.
//
// The built-in clip is the first 20 s of PETS 2009 S2.L1, view 1 (University
// of Reading), as distributed with OpenCV.
package sim
